//! The files that are tested, and the tools they are for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A path from the root of the repository.
pub(super) fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(relative)
}

pub(super) fn read(relative: &str) -> String {
    let path = path(relative);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files in a folder whose names end with `ending`, as paths from the root, sorted.
pub(super) fn files(folder: &str, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(path(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = names
        .filter(|name| name.ends_with(ending))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "nothing ends with {ending} in {folder}");
    files
}

/// A program of Debian's `package`.
pub(super) fn tool(program: &str, package: &str) -> Command {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(
        found.is_ok(),
        "there is no {program}: run lab/install.sh {package}"
    );
    Command::new(program)
}

/// Runs a check to its end, and wants success.
pub(super) fn must_pass(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let words = [&*output.stdout, &*output.stderr].concat();
    let words = String::from_utf8_lossy(&words).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}: {words}",
        output.status
    );
    words
}
