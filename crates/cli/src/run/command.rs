//! The command: started with its variables, sent what signals this process is sent, waited for.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};

use super::environment::Environment;

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// There is no such program.
    #[error("there is no command {0}")]
    NotFound(String),
    /// It cannot be executed.
    #[error("cannot execute {0}")]
    NotExecutable(String, #[source] io::Error),
    /// The system refused a signal handler, or does not say how the command ended.
    #[error("cannot watch over the command")]
    Watch(#[from] io::Error),
}

impl CommandError {
    /// The exit code that shells use for it.
    pub(super) const fn code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::NotExecutable(..) | Self::Watch(_) => 126,
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// Its exit code, or 128 and the number of the signal that ended it.
    pub(super) code: u8,
    /// The signal that ended it.
    pub(super) signal: Option<i32>,
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        let signal = status.signal();
        let code = signal.map_or(status.code().unwrap_or(1), |number| 128 + number);
        Self {
            code: u8::try_from(code).unwrap_or(u8::MAX),
            signal,
        }
    }
}

/// Runs `command`, its program first, to its end. It has this process's standard input, output
/// and error.
///
/// # Errors
/// [`CommandError`].
pub(super) async fn run(
    command: &[OsString],
    environment: &Environment,
) -> Result<Ended, CommandError> {
    // Before the command runs, so that none is lost.
    let mut signals = Signals::catch()?;
    let mut child = spawn(command, environment)?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status?.into()),
            signal = signals.next() => {
                if let Some(pid) = pid {
                    pass_on(signal, Pid::from_raw(pid));
                }
            }
        }
    }
}

fn spawn(command: &[OsString], environment: &Environment) -> Result<Child, CommandError> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| CommandError::NotFound(String::new()))?;
    let variables = environment.variables.iter();
    let spawned = Command::new(program)
        .args(arguments)
        .envs(variables.map(|(name, value)| (name, value)))
        .spawn();
    spawned.map_err(|error| {
        let program = program.to_string_lossy().into_owned();
        if error.kind() == ErrorKind::NotFound {
            CommandError::NotFound(program)
        } else {
            CommandError::NotExecutable(program, error)
        }
    })
}

fn pass_on(signal: Signal, to: Pid) {
    let from_terminal = matches!(signal, Signal::SIGINT | Signal::SIGQUIT);
    if from_terminal && is_in_foreground() {
        // The terminal has sent it to the command as well.
        return;
    }
    if let Err(error) = kill(to, signal) {
        tracing::debug!(%error, %signal, "not passed on to the command");
    }
}

/// Whether what is typed on the terminal reaches this process and the command.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(&terminal) == Ok(getpgrp()))
}

/// The signals that are the command's affair.
struct Signals {
    caught: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        let all = [
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ];
        // A shell's `&` and `nohup` have the command ignore some; caught here, it would not.
        let ignored = ignored();
        let wanted = all.into_iter().filter(|signal| !ignored.contains(*signal));
        let caught = wanted.map(|signal| {
            let kind = SignalKind::from_raw(signal as i32);
            unix::signal(kind).map(|caught| (signal, caught))
        });
        Ok(Self {
            caught: caught.collect::<io::Result<_>>()?,
        })
    }

    async fn next(&mut self) -> Signal {
        std::future::poll_fn(|cx| {
            for (signal, caught) in &mut self.caught {
                if caught.poll_recv(cx).is_ready() {
                    return std::task::Poll::Ready(*signal);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

/// The signals that this process was started to ignore; none where the system does not say.
fn ignored() -> SigSet {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let mask = mask.unwrap_or_default();
    Signal::iterator()
        .filter(|signal| (mask >> (*signal as i32 - 1)) & 1 == 1)
        .collect()
}
