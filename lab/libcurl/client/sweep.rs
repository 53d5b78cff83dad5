//! One call for each of many delays, all side by side.

use std::io::{self, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use crate::options::Sweep;

/// Time between two starts, so that none is disturbed by the next.
const SPACING: Duration = Duration::from_millis(40);

/// Starts a process for each delay and prints their lines in the order of the delays. A process
/// of its own, because a single thread sleeps and what the system says of it is then its own.
pub(crate) fn run(sweep: &Sweep) -> io::Result<ExitCode> {
    let program = std::env::current_exe()?;
    let mut children: Vec<Child> = Vec::new();
    for delay in &sweep.delays_ms {
        if !children.is_empty() {
            thread::sleep(SPACING);
        }
        let mut command = Command::new(&program);
        command
            .args(&sweep.arguments)
            .args(["--delay-ms", &delay.to_string()]);
        children.push(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()?,
        );
    }
    let mut worst = 0;
    for child in children {
        let output = child.wait_with_output()?;
        io::stdout().write_all(&output.stdout)?;
        let code = output
            .status
            .code()
            .and_then(|code| u8::try_from(code).ok());
        worst = worst.max(code.unwrap_or(u8::MAX));
    }
    io::stdout().flush()?;
    Ok(ExitCode::from(worst))
}
