//! curl, as a client that others wrote.

use std::process::{Command, Stdio};

use http::Response;
use skewtap_core::exchange::Outcome;

use crate::harness::{Running, config};
use crate::http2::pattern;
use crate::streams::{origin, run, send, whole};

#[test]
fn curl_speaks_http_2_by_prior_knowledge() {
    const LENGTH: usize = 500_000;
    run(async {
        let origin = origin(|request, mut respond| async move {
            let (head, mut body) = request.into_parts();
            let (bytes, _) = whole(&mut body).await;
            let bytes = if head.method == "GET" {
                pattern(LENGTH)
            } else {
                bytes
            };
            let response = Response::builder().header("content-length", bytes.len());
            let mut out = respond
                .send_response(response.body(()).unwrap(), false)
                .unwrap();
            send(&mut out, &bytes, None).await;
        })
        .await;
        let proxy = Running::start(config(origin.address));
        let address = proxy.addresses.traffic;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("body");
        std::fs::write(&file, pattern(LENGTH)).unwrap();
        let curl = tokio::task::spawn_blocking(move || {
            let upload = format!("@{}", file.display());
            for (path, options) in [("get", &[][..]), ("post", &["--data-binary", &upload])] {
                let mut curl = Command::new("curl");
                curl.args([
                    "--http2-prior-knowledge",
                    "--silent",
                    "--show-error",
                    "--fail",
                ])
                .args(["--max-time", "15", "--write-out", "%{http_version}"])
                .args(options)
                .arg(format!("http://{address}/{path}"));
                let output = curl.stdin(Stdio::null()).output().unwrap();
                let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{complaint}");
                let expected = [pattern(LENGTH), b"2".to_vec()].concat();
                assert!(output.stdout == expected, "body differs; {complaint}");
            }
        });
        curl.await.unwrap();
        for (record, path) in proxy.records(2).iter().zip(["/get", "/post"]) {
            assert_eq!(record.path, path);
            assert_eq!(record.outcome, Outcome::Complete);
            assert!(record.down_stream.is_some());
        }
    });
}
