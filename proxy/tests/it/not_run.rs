//! Tests that lack what they need.

use std::io::Write as _;

/// Says that a test was not run, and puts it down in the file that `SKEWTAP_NOT_RUN` names.
pub(crate) fn not_run(test: &str, why: &str) {
    let line = format!("proxy {test}: {why}\n");
    eprint!("not run: {line}");
    if let Some(path) = std::env::var_os("SKEWTAP_NOT_RUN") {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path);
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}
