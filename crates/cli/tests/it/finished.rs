//! The program's ends: exit codes and last words.

use std::process::Output;

use super::program::{Running, skewtap};

/// Runs it to its end.
pub(super) fn run(arguments: &[&str]) -> Output {
    skewtap().args(arguments).output().unwrap()
}

pub(super) fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

pub(super) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(super) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Closes a part's standard input, and gives its exit code.
pub(super) fn end(mut running: Running) -> Option<i32> {
    drop(running.child.stdin.take());
    running.child.wait().unwrap().code()
}
