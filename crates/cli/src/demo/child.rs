//! The demo's processes, started from this very program and always ended with it.

use std::env;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::start_line;

/// Longest wait for a part to say where it listens.
const START: Duration = Duration::from_secs(10);
/// Longest wait for a part to end by itself, before it is killed.
const END: Duration = Duration::from_secs(3);

/// This program, ready to be started again.
#[derive(Clone, Debug)]
pub(super) struct Program {
    path: PathBuf,
    log: String,
}

impl Program {
    /// Finds the program's own file. Its children log what `log` lets through.
    ///
    /// # Errors
    /// The file cannot be found.
    pub(super) fn find(log: &str) -> anyhow::Result<Self> {
        Ok(Self {
            path: env::current_exe().context("cannot find this program's own file")?,
            log: log.to_owned(),
        })
    }

    /// A command that starts `subcommand`.
    ///
    /// The process is killed when its handle is dropped. It gets a group of its own: Ctrl-C on
    /// the terminal must reach the demo alone, which then ends its parts in order. Variables the
    /// user has set for other programs, or for this one, do not reach it.
    pub(super) fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.kill_on_drop(true).process_group(0);
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("OTEL_") || text.starts_with("SKEWTAP_") {
                command.env_remove(&name);
            }
        }
        command.arg("--log").arg(&self.log).arg(subcommand);
        command
    }
}

/// A part that runs until it is ended. It dies with this value, and with this process.
pub(super) struct Part {
    name: &'static str,
    child: Child,
    /// The part ends when this is closed, be it because this process died.
    stdin: ChildStdin,
    start_line: String,
}

impl Part {
    /// Starts a subcommand that takes `--end-with-stdin`, and reads its start line.
    ///
    /// # Errors
    /// It cannot be started, ends at once, or says nothing.
    pub(super) async fn start<A: AsRef<OsStr>>(
        program: &Program,
        name: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> anyhow::Result<Self> {
        let mut child = program
            .command(name)
            .args(arguments)
            .arg("--end-with-stdin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the {name}"))?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(START, lines.next_line())
            .await
            .with_context(|| format!("the {name} did not say within {START:?} where it listens"))?
            .with_context(|| format!("cannot read what the {name} says"))?;
        let Some(start_line) = line else {
            let status = child.wait().await?;
            anyhow::bail!("the {name} did not start ({status}); its own words are above");
        };
        // What else it prints is of no use here, and read so that it never has to wait.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self {
            name,
            child,
            stdin,
            start_line,
        })
    }

    /// The address it listens on under `listener`.
    ///
    /// # Errors
    /// Its start line has no such name.
    pub(super) fn address(&self, listener: &str) -> anyhow::Result<SocketAddr> {
        start_line::address(&self.start_line, listener).with_context(|| {
            let Self {
                name, start_line, ..
            } = self;
            format!("the {name} gives no {listener} address: {start_line:?}")
        })
    }

    /// Tells it to end, waits for that, and kills it if it does not.
    pub(super) async fn end(mut self) {
        let part = self.name;
        drop(self.stdin);
        match timeout(END, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => {}
            Ok(Ok(status)) => tracing::warn!(part, %status, "ended badly"),
            Ok(Err(error)) => tracing::warn!(part, %error, "cannot be waited for"),
            Err(_) => {
                tracing::warn!(part, "did not end by itself, killed");
                if let Err(error) = self.child.kill().await {
                    tracing::warn!(part, %error, "cannot be killed");
                }
            }
        }
    }
}
