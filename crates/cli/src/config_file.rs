//! The configuration file: one TOML file that sets what flags can set.
//!
//! A key at the top is a flag that every subcommand takes; a table bears the name of a
//! subcommand and holds its flags. The names are those of the flags without `--`, and the
//! definition of the command line is the only list of them; but for routes, which only the file
//! has. A flag goes before a variable,
//! a variable before the file, and the file before the usual value.

pub(crate) mod faults;
pub(crate) mod reference;
mod routes;
mod settings;
mod values;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use toml::de::DeTable;

use crate::args::RouteArgs;

use faults::{Fault, Faults};
use settings::Setting;

/// The flag that names the file.
const FLAG: &str = "config";

/// The subcommand that looks at the file as a file.
const CHECKING: &str = "config";

/// The longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    /// It cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What it says is wrong.
    #[error(transparent)]
    Faults(#[from] Faults),
}

/// A configuration file that holds no fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    settings: Vec<Setting>,
    routes: Vec<RouteArgs>,
}

impl ConfigFile {
    /// Reads the file at `path` by the flags that `program` defines.
    ///
    /// # Errors
    /// [`ConfigFileError`], with all faults together.
    pub(crate) fn read(path: &Path, program: &Command) -> Result<Self, ConfigFileError> {
        let text = text_of(path).map_err(|source| ConfigFileError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        parse(&text, program).map_err(|faults| Faults::new(path, &text, faults).into())
    }

    /// How many settings it holds; a route counts as one.
    pub(crate) fn len(&self) -> usize {
        self.settings.len() + self.routes.len()
    }

    /// The routes that it has for the proxy.
    pub(crate) fn into_routes(self) -> Vec<RouteArgs> {
        self.routes
    }

    /// `program` with what the file sets in place of the usual values.
    pub(crate) fn as_usual_values(&self, program: Command) -> Command {
        self.settings.iter().fold(program, Setting::as_usual_value)
    }
}

/// The file that a command line or its variables name for their settings, if any: not the one
/// that is only to be checked. What is wrong with the rest of the command line is left to those
/// who read it as a whole.
pub(crate) fn named_by(
    program: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Option<PathBuf> {
    let lenient = program.clone().ignore_errors(true);
    let matches = lenient.try_get_matches_from(arguments).ok()?;
    if matches.subcommand_name() == Some(CHECKING) {
        return None;
    }
    matches.get_one::<PathBuf>(FLAG).cloned()
}

fn text_of(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > LONGEST {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    fs::read_to_string(path)
}

fn parse(text: &str, program: &Command) -> Result<ConfigFile, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().map(Fault::of_syntax).collect());
    }
    let mut program = program.clone();
    program.build();
    let (settings, routes) = settings::read(table.get_ref(), &program)?;
    Ok(ConfigFile { settings, routes })
}

#[cfg(test)]
mod tests;
