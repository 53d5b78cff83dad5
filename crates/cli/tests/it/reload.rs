//! `skewtap proxy` takes on its file anew at SIGHUP.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::delaying_server::DelayingServer;
use super::finished::end;
use super::program::{Running, skewtap};

const PATIENCE: Duration = Duration::from_secs(20);

/// A proxy by a file, with its log in another.
struct ByFile {
    running: Running,
    folder: TempDir,
}

impl ByFile {
    fn start(text: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("skewtap.toml");
        fs::write(&file, text).unwrap();
        let mut program = skewtap();
        program
            .args(["proxy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .arg("--no-capture")
            .arg("--config")
            .arg(&file)
            .stderr(File::create(folder.path().join("log")).unwrap());
        Self {
            running: Running::start_program(program),
            folder,
        }
    }

    /// Writes the file anew and sends SIGHUP.
    fn reload(&self, text: &str) {
        fs::write(self.path("skewtap.toml"), text).unwrap();
        let pid = Pid::from_raw(self.running.child.id().cast_signed());
        kill(pid, Signal::SIGHUP).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The first line of the log that holds `words`, once it is there.
    fn logged(&self, words: &str) -> String {
        let began = Instant::now();
        loop {
            let log = fs::read_to_string(self.path("log")).unwrap();
            if let Some(line) = log.lines().find(|line| line.contains(words)) {
                return line.to_owned();
            }
            assert!(began.elapsed() < PATIENCE, "no {words:?} in {log:?}");
        }
    }

    fn get(&self, name: &str, path: &str) -> String {
        let address: SocketAddr = self.running.address(name);
        let response = reqwest::blocking::get(format!("http://{address}{path}"));
        response.unwrap().text().unwrap()
    }
}

fn file(server: &DelayingServer, more: &str) -> String {
    format!("[proxy]\nupstream = '{}'\n{more}", server.url(""))
}

#[test]
fn a_hangup_takes_on_a_good_file_and_leaves_a_bad_one() {
    let (one, two) = (DelayingServer::start(), DelayingServer::start());
    let proxy = ByFile::start(&file(&one, ""));
    assert_eq!(proxy.get("traffic", "/1"), "ok\n");

    proxy.reload(&file(&two, "upstraem = 'x'\nworkers = 'many'\n"));
    let line = proxy.logged("settings not taken on");
    for fault in [
        "skewtap.toml:3: unknown key upstraem",
        "skewtap.toml:4: workers",
    ] {
        assert!(line.contains(fault), "{line}");
    }
    let metrics = proxy.get("admin", "/metrics");
    let failed = "\nskewtap_proxy_config_last_reload_successful 0\n";
    assert!(metrics.contains(failed), "{metrics}");
    assert_eq!(proxy.get("traffic", "/2"), "ok\n");

    proxy.reload(&file(&two, "workers = 3\n"));
    let line = proxy.logged("settings taken on anew");
    assert!(line.contains("workers"), "{line}");
    let metrics = proxy.get("admin", "/metrics");
    let succeeded = "\nskewtap_proxy_config_last_reload_successful 1\n";
    assert!(metrics.contains(succeeded), "{metrics}");
    assert_eq!(proxy.get("traffic", "/3"), "ok\n");

    let asked = |server: &DelayingServer| {
        let served = server.served().into_iter();
        served.map(|served| served.target).collect::<Vec<_>>()
    };
    assert_eq!(
        (asked(&one), asked(&two)),
        (vec!["/1".into(), "/2".into()], vec!["/3".into()])
    );
    assert_eq!(end(proxy.running), Some(0));
}
