//! What is wrong with a configuration file, each with its line.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where in the text, in bytes.
    pub(super) span: Range<usize>,
    /// What is wrong, and what to do about it.
    pub(super) what: String,
}

impl Fault {
    /// Text that is no TOML.
    pub(super) fn of_syntax(error: &toml::de::Error) -> Self {
        Self {
            span: error.span().unwrap_or_default(),
            what: error.message().to_owned(),
        }
    }
}

/// All faults of one file, in the order of their lines.
#[derive(Debug)]
pub(crate) struct Faults {
    path: PathBuf,
    /// Line, counted from 1, and what is wrong there.
    lines: Vec<(usize, String)>,
}

impl Faults {
    /// Those found in `text`, which is the file at `path`.
    pub(super) fn new(path: &Path, text: &str, faults: Vec<Fault>) -> Self {
        let line_of = |at: usize| {
            let before = text.as_bytes().iter().take(at);
            before.filter(|byte| **byte == b'\n').count() + 1
        };
        let mut lines: Vec<(usize, String)> = faults
            .into_iter()
            .map(|fault| (line_of(fault.span.start), fault.what))
            .collect();
        lines.sort();
        Self {
            path: path.to_owned(),
            lines,
        }
    }
}

impl fmt::Display for Faults {
    /// One line for each: file, line, what is wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (line, what)) in self.lines.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:{line}: {what}", self.path.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// `known`, as something to try instead of `unknown`.
pub(super) fn suggestion<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let unknown = unknown.replace('_', "-");
    let likeness = |name: &str| strsim::jaro_winkler(&unknown, name);
    let nearest = known
        .iter()
        .copied()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest {
        Some(name) if likeness(name) > 0.75 => format!("; did you mean {name}?"),
        _ => format!("; known are {}", known.join(", ")),
    }
}
