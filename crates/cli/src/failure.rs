//! How the program ends: its exit codes, and the words it ends with.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

/// What the program's exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked to.
    Done,
    /// It measured, and the result is not the wanted one.
    Unwanted,
    /// The command line or the environment asks for something impossible.
    Usage,
    /// A port, the store or a part of the program could not be had.
    CannotStart,
    /// It started, and broke later.
    Broken,
    /// The user stopped it before it was done.
    Interrupted,
    /// A program that it ran for the user ended with this code.
    Command(u8),
}

impl Exit {
    /// The table of codes as `--help` prints it.
    pub(crate) const HELP: &str = "\
Exit codes:
  0    done as asked
  1    measured, and not as wanted (demo: a planted gap missed, or a healthy exchange flagged)
  2    wrong command line, environment or configuration file
  3    could not start (port taken, store cannot be opened)
  4    broke while running
  130  interrupted before it was done";

    /// The code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Unwanted => 1,
            Self::Usage => 2,
            Self::CannotStart => 3,
            Self::Broken => 4,
            Self::Interrupted => 130,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why the program ends without having done what it was asked to.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
    advice: Option<String>,
}

impl Failure {
    /// Something needed at the start could not be had.
    pub(crate) fn cannot_start(error: anyhow::Error) -> Self {
        Self::new(Exit::CannotStart, error)
    }

    /// It broke while it ran.
    pub(crate) fn broken(error: anyhow::Error) -> Self {
        Self::new(Exit::Broken, error)
    }

    /// The environment asks for something impossible.
    pub(crate) fn usage(error: anyhow::Error) -> Self {
        Self::new(Exit::Usage, error)
    }

    /// Adds a line that says what to do.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Says on standard error what went wrong, and gives the exit code.
    pub(crate) fn report(&self) -> Exit {
        let mut stderr = anstream::stderr().lock();
        // Where standard error is closed, the exit code still tells.
        writeln!(stderr, "{self}")
            .and_then(|()| stderr.flush())
            .unwrap_or(());
        self.exit
    }

    const fn new(exit: Exit, error: anyhow::Error) -> Self {
        Self {
            exit,
            error,
            advice: None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let red = anstyle::AnsiColor::Red.on_default().bold();
        write!(f, "{red}skewtap:{red:#} {}", one_line(&self.error))?;
        if let Some(advice) = &self.advice {
            write!(f, "\n  {advice}")?;
        }
        Ok(())
    }
}

/// The error and its causes; a cause that the error above it quotes already is not told twice.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for words in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = words;
        } else if !line.contains(&words) {
            line.push_str(": ");
            line.push_str(&words);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn the_chain_is_one_line_and_the_advice_another() {
        let error = Err::<(), _>(anyhow!("address in use"))
            .context("cannot listen on 127.0.0.1:80")
            .unwrap_err();
        let text = Failure::cannot_start(error)
            .advise("choose another port with --listen")
            .to_string();
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(
            plain,
            "skewtap: cannot listen on 127.0.0.1:80: address in use\n  choose another port with --listen"
        );
    }

    #[test]
    fn a_cause_is_told_once() {
        let error =
            anyhow!("address in use").context("cannot listen: address in use; take another");
        let error = error.context("cannot start");
        assert_eq!(
            one_line(&error),
            "cannot start: cannot listen: address in use; take another"
        );
    }

    #[test]
    fn every_code_is_in_the_help() {
        let all = [
            Exit::Done,
            Exit::Unwanted,
            Exit::Usage,
            Exit::CannotStart,
            Exit::Broken,
            Exit::Interrupted,
        ];
        for exit in all {
            let code = format!("\n  {} ", exit.code());
            assert!(Exit::HELP.contains(&code), "{exit:?}");
        }
    }
}
