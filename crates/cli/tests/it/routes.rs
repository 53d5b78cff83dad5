//! `[[proxy.route]]` of the configuration file.

use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::thread;

use tempfile::TempDir;

use super::delaying_server::DelayingServer;
use super::finished::{code, run, stderr, stdout};
use super::program::Running;

#[test]
fn a_proxy_routes_by_its_file() {
    let (one, two) = (DelayingServer::start(), DelayingServer::start());
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("three.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 1_000];
        let (Ok(_) | Err(_)) = stream.read(&mut bytes);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nthree\n";
        std::io::Write::write_all(&mut stream, answer).unwrap();
    });
    let file = folder.path().join("skewtap.toml");
    let text = format!(
        "[proxy]
        upstream = '{}'
        no-capture = true
        [[proxy.route]]
        path = '/two'
        upstream = '{}'
        [[proxy.route]]
        host = '*.three.example'
        upstream = 'unix:{}'
        ",
        one.url(""),
        two.url(""),
        socket.display()
    );
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let checked = run(&["config", "check", file]);
    assert_eq!(code(&checked), 0, "{}", stderr(&checked));
    assert!(
        stdout(&checked).contains("no fault, 4 settings"),
        "{}",
        stdout(&checked)
    );
    let proxy = Running::start(&["proxy", "--config", file, "--listen", "127.0.0.1:0"]);
    let address = proxy.address("traffic");
    let client = reqwest::blocking::Client::new();
    let ask = |path: &str, host: &str| {
        let request = client
            .get(format!("http://{address}{path}"))
            .header("host", host);
        request.send().unwrap().text().unwrap()
    };
    assert_eq!(ask("/one", "a"), "ok\n");
    assert_eq!(ask("/two/x", "a"), "ok\n");
    assert_eq!(ask("/", "a.three.example"), "three\n");
    assert_eq!(
        (one.only().target.as_str(), two.only().target.as_str()),
        ("/one", "/two/x")
    );
}

#[test]
fn a_route_with_a_fault_starts_nothing_and_a_check_tells_its_line() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("skewtap.toml");
    fs::write(
        &file,
        "[[proxy.route]]\nhosts = 'a'\nupstream = 'http://a'\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    for arguments in [&["config", "check", file][..], &["proxy", "--config", file]] {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        let words = stderr(&output);
        let told = "skewtap.toml:2: unknown key hosts in [[proxy.route]]; did you mean host?";
        assert!(words.contains(told), "{words}");
    }
}
