//! Help, bad flags, exit codes.

use super::finished::{code, run, stderr, stdout};
use super::program::skewtap;

#[test]
fn every_subcommand_has_help_with_examples_and_exit_codes() {
    for subcommand in ["demo", "run", "proxy", "ca", "collector"] {
        let output = run(&[subcommand, "--help"]);
        assert_eq!(code(&output), 0, "{subcommand}");
        let help = stdout(&output);
        for part in ["Examples:", "Exit codes:", "SKEWTAP_", "130 "] {
            assert!(help.contains(part), "{subcommand}: no {part}\n{help}");
        }
    }
}

#[test]
fn the_parts_of_the_demo_are_not_listed() {
    let help = stdout(&run(&["--help"]));
    assert!(help.contains("demo "), "{help}");
    assert!(!help.contains("demo-client"), "{help}");
    assert!(!help.contains("end-with-stdin"), "{help}");
}

#[test]
fn an_unknown_flag_is_wrong_usage() {
    let output = run(&["demo", "--speed"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--speed"));
}

#[test]
fn an_unreadable_log_filter_is_wrong_usage() {
    let output = run(&["demo", "--log", "skewtap=loudly"]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).starts_with("skewtap: cannot read the log filter"));
}

#[test]
fn errors_are_plain_where_nobody_looks_on() {
    let output = run(&["demo", "--log", "skewtap=loudly"]);
    assert!(!stderr(&output).contains('\u{1b}'));
}

#[test]
fn a_variable_stands_for_a_flag() {
    let output = skewtap()
        .env("SKEWTAP_LOG", "skewtap=loudly")
        .arg("demo")
        .output()
        .unwrap();
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}
