//! A clock that tests step for processes of theirs, and for no one else.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use tempfile::TempDir;

/// `CLOCK_REALTIME` of the processes that get its variables.
pub(super) struct SteppedClock {
    folder: TempDir,
    /// By how much it is ahead, in nanoseconds.
    ahead_ns: Mutex<i64>,
}

impl SteppedClock {
    /// One that is right.
    pub(super) fn new() -> Self {
        let clock = Self {
            folder: tempfile::tempdir().unwrap(),
            ahead_ns: Mutex::new(0),
        };
        fs::write(clock.step(), [0; 8]).unwrap();
        let source = format!("{}/tests/clock/step.c", env!("CARGO_MANIFEST_DIR"));
        let built = Command::new("cc")
            .args(["-Wall", "-Werror", "-O1", "-shared", "-fPIC", &source, "-o"])
            .arg(clock.library())
            .arg("-ldl")
            .status();
        assert!(built.unwrap().success());
        clock
    }

    /// Steps it.
    pub(super) fn step_by(&self, ns: i64) {
        let mut ahead_ns = self.ahead_ns.lock().unwrap();
        *ahead_ns += ns;
        let file = File::options().write(true).open(self.step()).unwrap();
        file.write_all_at(&ahead_ns.to_ne_bytes(), 0).unwrap();
    }

    /// What makes a process read it.
    pub(super) fn variables(&self) -> [(&'static str, String); 2] {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        [
            ("LD_PRELOAD", text(self.library())),
            ("STEPPED_CLOCK", text(self.step())),
        ]
    }

    fn step(&self) -> PathBuf {
        self.folder.path().join("step")
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("step.so")
    }
}
