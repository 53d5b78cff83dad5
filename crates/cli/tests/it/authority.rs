//! `skewtap ca`, and what is behind `--intercept`.

use std::os::unix::fs::PermissionsExt as _;

use super::finished::{code, run, stderr, stdout};

#[test]
fn an_authority_is_made_once_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made");
    let folder = folder.to_str().unwrap();
    let made = run(&["ca", "--ca-dir", folder, "init"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let key = std::fs::metadata(format!("{folder}/ca-key.pem")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    let again = run(&["ca", "--ca-dir", folder, "init"]);
    assert_eq!(code(&again), 3);
    assert!(stderr(&again).contains("is there already"));
    let shown = stdout(&run(&["ca", "--ca-dir", folder, "show"]));
    assert!(shown.starts_with("-----BEGIN CERTIFICATE-----"), "{shown}");
    assert!(!shown.contains("PRIVATE"), "{shown}");
    let path = stdout(&run(&["ca", "--ca-dir", folder, "show", "--path"]));
    assert_eq!(path, format!("{folder}/ca.pem\n"));
}

#[test]
fn without_an_authority_nothing_is_intercepted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let listen = ["proxy", "--listen", "127.0.0.1:0", "--no-capture"];
    let rest = ["--intercept", "a.example", "--ca-dir", folder];
    let output = run(&[&listen[..], &rest[..]].concat());
    assert_eq!(code(&output), 3);
    assert!(
        stderr(&output).contains("skewtap ca init"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_certificate_needs_its_key() {
    let output = run(&["proxy", "--tls-cert", "cert.pem"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--tls-key"));
}
