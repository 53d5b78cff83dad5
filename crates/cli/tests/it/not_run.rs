//! Tests that lack what they need.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Puts this test down in the file that `SKEWTAP_NOT_RUN` names; without such a file it fails.
pub(crate) fn not_run(why: &str) {
    let list: Option<OsString> = std::env::var_os("SKEWTAP_NOT_RUN");
    let list = list.unwrap_or_else(|| panic!("{why}"));
    let name = std::thread::current().name().unwrap().to_owned();
    let mut list = OpenOptions::new()
        .create(true)
        .append(true)
        .open(list)
        .unwrap();
    list.write_all(format!("{name} {why}\n").as_bytes())
        .unwrap();
}
