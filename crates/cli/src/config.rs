//! `skewtap config`.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::args::{Args, ConfigAction, ConfigArgs};
use crate::config_file::{ConfigFile, reference};
use crate::failure::{Exit, Failure};

/// Does what was asked with a configuration file, which `named` is unless the arguments name another.
///
/// # Errors
/// The file holds faults or cannot be read, none is named, or the output cannot be written.
pub(crate) fn run(args: &ConfigArgs, named: Option<PathBuf>) -> Result<Exit, Failure> {
    let program = Args::command();
    let text = match &args.action {
        ConfigAction::Example => reference::example(&program),
        ConfigAction::Reference => reference::page(&program),
        ConfigAction::Check { file } => {
            let path = file.clone().or(named);
            let path = path
                .context("no file to check; name one")
                .map_err(Failure::usage)?;
            let file = ConfigFile::read(&path, &program).map_err(|e| Failure::usage(e.into()))?;
            format!("{}: no fault, {} settings\n", path.display(), file.len())
        }
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to standard output")
        .map_err(Failure::broken)?;
    Ok(Exit::Done)
}
