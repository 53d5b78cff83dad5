//! What ends a part of the program that runs until it is told to stop.

use std::io::{self, Read};
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// The ways to be told to stop.
pub(crate) struct Shutdown {
    interrupt: Signal,
    terminate: Signal,
    stdin_end: Option<oneshot::Receiver<()>>,
}

impl Shutdown {
    /// Listens for SIGINT and SIGTERM, and for the end of standard input if `with_stdin`.
    ///
    /// # Errors
    /// The system refused a signal handler or a thread.
    pub(crate) fn listen(with_stdin: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            stdin_end: with_stdin.then(stdin_end).transpose()?,
        })
    }

    /// Waits until one of them happens.
    pub(crate) async fn requested(&mut self) {
        let stdin_end = async {
            match self.stdin_end.as_mut() {
                // The thread that holds the sender ends with standard input, with or without an error.
                Some(end) => end.await.unwrap_or_default(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => tracing::info!(signal = "SIGINT", "stopping"),
            _ = self.terminate.recv() => tracing::info!(signal = "SIGTERM", "stopping"),
            () = stdin_end => tracing::info!("standard input ended, stopping"),
        }
    }
}

/// A plain thread, because a runtime waits for its own blocking reads before it ends.
fn stdin_end() -> io::Result<oneshot::Receiver<()>> {
    let (ended, end) = oneshot::channel();
    thread::Builder::new()
        .name("stdin-end".to_owned())
        .spawn(move || {
            let mut ignored = [0; 64];
            let mut stdin = io::stdin().lock();
            while stdin.read(&mut ignored).is_ok_and(|bytes| bytes > 0) {}
            drop(ended);
        })?;
    Ok(end)
}
