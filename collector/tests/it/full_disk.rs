//! A disk that fills up costs nothing that was acknowledged, and is forgotten once there is room.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use http::StatusCode;
use prost::Message as _;
use tempfile::{TempDir, tempdir};

use super::running::{Answer, Running, config, get, post, verdict, wait_for};
use super::samples;

/// A file system of two mebibytes, gone when this value is dropped.
struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    /// `None` where it may not be mounted, which is noted in the file that `SKEWTAP_NOT_RUN`
    /// names; without such a file, the test fails.
    fn mount(test: &str) -> Option<Self> {
        let directory = tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
            .arg(directory.path())
            .output()
            .unwrap();
        if mounted.status.success() {
            return Some(Self { directory });
        }
        let why = String::from_utf8_lossy(&mounted.stderr);
        let list = std::env::var_os("SKEWTAP_NOT_RUN");
        let list = list.unwrap_or_else(|| panic!("{test} has to mount a file system: {why}"));
        let list = OpenOptions::new().create(true).append(true).open(list);
        writeln!(list.unwrap(), "{test}: needs CAP_SYS_ADMIN").unwrap();
        None
    }

    fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// Takes all the room there is; the file to delete to give it back.
    fn fill(&self) -> PathBuf {
        let path = self.directory.path().join("filler");
        let mut filler = fs::File::create(&path).unwrap();
        // Down to the last byte, so that not even a page is left.
        for size in [4096, 1] {
            while filler.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: after a failed assertion the collector still has files open there.
        let mut unmount = Command::new("umount");
        let unmounted = unmount.arg("--lazy").arg(self.directory.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

async fn send(collector: &Running, n: u64) -> Answer {
    let headers = [("content-type", "application/x-protobuf")];
    let body = samples::request(&samples::asleep(n)).encode_to_vec();
    post(collector.addresses.otlp_http, "/v1/traces", &headers, body).await
}

/// Sends calls from number `from` on until one is refused; the number of that one, and the answer.
async fn send_until_refused(collector: &Running, from: u64) -> (u64, Answer) {
    let mut n = from;
    loop {
        let answer = send(collector, n).await;
        if answer.status != StatusCode::OK {
            return (n, answer);
        }
        n += 1;
    }
}

#[tokio::test]
async fn needs_root_a_full_disk_refuses_for_now_and_loses_nothing_acknowledged() {
    let name = "needs_root_a_full_disk_refuses_for_now_and_loses_nothing_acknowledged";
    let Some(disk) = SmallDisk::mount(name) else {
        return;
    };
    let collector = Running::start(config(&disk.store())).await;
    assert_eq!(send(&collector, 1).await.status, StatusCode::OK);
    verdict(collector.addresses.http, 1, |v| v.flagged).await;
    let filler = disk.fill();
    let (refused, answer) = send_until_refused(&collector, 2).await;
    // What an exporter sends again later.
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
    let http = collector.addresses.http;
    let health = wait_for(http, "/healthz", |answer| answer.status != StatusCode::OK).await;
    assert!(health.text().contains("full"), "{}", health.text());
    let details = get(http, "/api/v1/health").await.json();
    assert_eq!(details["ok"], false);
    // What is there can still be read.
    assert_eq!(get(http, "/api/v1/exchanges").await.status, StatusCode::OK);
    fs::remove_file(filler).unwrap();
    wait_for(http, "/healthz", |answer| answer.status == StatusCode::OK).await;
    assert_eq!(send(&collector, refused).await.status, StatusCode::OK);
    for n in 1..=refused {
        verdict(http, n, |v| v.findings.len() == 1).await;
    }
    collector.stop().await;
}

/// What a disk that was full when the collector was killed leaves behind can be opened again.
#[tokio::test]
async fn needs_root_a_start_on_a_full_disk_says_so_and_one_with_room_goes_on() {
    let name = "needs_root_a_start_on_a_full_disk_says_so_and_one_with_room_goes_on";
    let Some(disk) = SmallDisk::mount(name) else {
        return;
    };
    fs::create_dir(disk.store()).unwrap();
    let filler = disk.fill();
    let error = skewtap_collector::Collector::bind(config(&disk.store()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("--store"), "{error}");
    assert!(is_small(&disk.store()), "nothing half made is left");
    fs::remove_file(filler).unwrap();
    let collector = Running::start(config(&disk.store())).await;
    assert_eq!(send(&collector, 1).await.status, StatusCode::OK);
    collector.stop().await;
}

fn is_small(store: &Path) -> bool {
    let sizes = fs::read_dir(store).unwrap();
    let sizes = sizes.map(|entry| entry.unwrap().metadata().unwrap().len());
    sizes.sum::<u64>() < 100_000
}
