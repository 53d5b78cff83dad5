//! `skewtap run` to its end, with its document.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::program::skewtap;

/// A run and what it measured.
pub(crate) struct MeasuredRun {
    pub(crate) output: Output,
    pub(crate) document: Value,
}

impl MeasuredRun {
    /// Runs `command` with the run's own `flags`.
    pub(crate) fn new(flags: &[&str], command: &[&str]) -> Self {
        Self::with_variables(flags, command, &[])
    }

    /// The same where the user has set `variables`.
    pub(crate) fn with_variables(
        flags: &[&str],
        command: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        Self::with_program(skewtap(), flags, command, variables)
    }

    /// The same where the program is started in its own way.
    pub(crate) fn with_program(
        mut program: Command,
        flags: &[&str],
        command: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let scratch = TempDir::new().unwrap();
        let file = scratch.path().join("run.json");
        let path = std::env::var_os("PATH").unwrap();
        let output = program
            .env("PATH", path)
            .env("TMPDIR", scratch.path())
            .envs(variables.iter().copied())
            .arg("run")
            .arg("--json")
            .arg(&file)
            .args(flags)
            .arg("--")
            .args(command)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let document = std::fs::read(&file).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
        });
        std::fs::remove_file(&file).unwrap();
        let left = std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(left, 0, "the run left something behind");
        let document = serde_json::from_slice(&document).unwrap();
        Self { output, document }
    }

    /// The requests.
    pub(crate) fn requests(&self) -> &[Value] {
        self.document["requests"].as_array().unwrap()
    }

    /// The one request there was.
    pub(crate) fn only(&self) -> &Value {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{}{:#}", self.stderr(), self.document);
        &requests[0]
    }

    /// Bounds of a stage of the one request there was, in seconds.
    pub(crate) fn stage(&self, name: &str) -> (f64, f64) {
        let stage = &self.only()["stages"][name];
        let bound = |which: &str| {
            let bound = stage[which].as_f64();
            bound.unwrap_or_else(|| panic!("no {name}: {:#}", self.only()))
        };
        (bound("lo_seconds"), bound("hi_seconds"))
    }

    pub(crate) fn code(&self) -> i32 {
        self.output.status.code().unwrap()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).unwrap()
    }
}
