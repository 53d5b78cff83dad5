//! The configuration file, as the program takes it.

use std::fs;

use super::finished::{code, run, stderr, stdout};
use super::program::{Running, skewtap};

#[test]
fn a_collector_is_started_by_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("skewtap.toml");
    let store = directory.path().join("store");
    let text = format!(
        "[collector]\notlp-grpc = '127.0.0.1:0'\notlp-http = '127.0.0.1:0'\n\
         http = '127.0.0.1:0'\nstore = {:?}\n",
        store.to_str().unwrap()
    );
    fs::write(&file, text).unwrap();
    let named = file.to_str().unwrap();
    let running = Running::start_with(&["collector"], &[("SKEWTAP_CONFIG", named)]);
    assert_ne!(running.address("http").port(), 4390);
    assert!(store.join("skewtap.db").is_file());
}

#[test]
fn a_variable_goes_before_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("skewtap.toml");
    fs::write(&file, "[proxy]\nlisten = '192.0.2.1:1'\n").unwrap();
    let named = file.to_str().unwrap();
    let variables = [("SKEWTAP_LISTEN", "127.0.0.1:0"), ("SKEWTAP_CONFIG", named)];
    let running = Running::start_with(&["proxy", "--no-capture"], &variables);
    assert!(running.address("traffic").ip().is_loopback());
}

#[test]
fn a_file_with_faults_starts_nothing_and_a_check_tells_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("skewtap.toml");
    fs::write(&file, "[proxy]\nlisen = 'x'\nworkers = 0\n").unwrap();
    let named = file.to_str().unwrap();
    for arguments in [
        &["proxy", "--config", named][..],
        &["config", "check", named],
        &["config", "check", "--config", named],
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        let told = stderr(&output);
        assert!(told.contains("skewtap.toml:2: unknown key lisen"), "{told}");
        assert!(told.contains("skewtap.toml:3: workers"), "{told}");
    }
}

#[test]
fn the_example_can_be_checked() {
    let directory = tempfile::tempdir().unwrap();
    let example = run(&["config", "example"]);
    assert_eq!(code(&example), 0);
    let file = directory.path().join("skewtap.toml");
    fs::write(&file, stdout(&example)).unwrap();
    let output = run(&["config", "check", file.to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).ends_with("no fault, 0 settings\n"));
}

#[test]
fn a_file_that_is_not_there_and_a_check_of_none_are_wrong_usage() {
    let missing = run(&["proxy", "--config", "no-such-file.toml"]);
    assert_eq!(code(&missing), 2);
    assert!(stderr(&missing).contains("no-such-file.toml"));
    let none = skewtap().args(["config", "check"]).output().unwrap();
    assert_eq!(code(&none), 2, "{}", stderr(&none));
}
