//! Carries spans to the collector without making a request wait.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use otlp_json::{Reporter, Span, export_request};

use crate::collector_url::CollectorUrl;

/// Spans that may wait for the collector.
const QUEUE_LENGTH: usize = 1024;
/// Spans sent in one document at most.
const BATCH_LENGTH: usize = 128;

/// The way in.
pub(crate) struct SpanQueue {
    sender: SyncSender<Span>,
    refused: AtomicU64,
}

impl SpanQueue {
    /// Starts the thread that sends.
    pub(crate) fn start(collector: CollectorUrl, reporter: Reporter) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE_LENGTH);
        thread::Builder::new()
            .name("span-reporter".to_owned())
            .spawn(move || send_all(&receiver, &collector, &reporter))?;
        Ok(Self {
            sender,
            refused: AtomicU64::new(0),
        })
    }

    /// Hands a span on, or counts and says that it was refused because the queue is full.
    pub(crate) fn offer(&self, span: Span) {
        if self.sender.try_send(span).is_err() {
            let refused = self
                .refused
                .fetch_add(1, Ordering::Relaxed)
                .saturating_add(1);
            say(&format!(
                "spans refused so far, because too many wait: {refused}"
            ));
        }
    }
}

fn send_all(receiver: &Receiver<Span>, collector: &CollectorUrl, reporter: &Reporter) {
    while let Ok(first) = receiver.recv() {
        let mut batch = vec![first];
        batch.extend(receiver.try_iter().take(BATCH_LENGTH - 1));
        if let Err(error) = collector.post(&export_request(reporter, &batch)) {
            say(&format!("{} spans lost: {collector}: {error}", batch.len()));
        }
    }
}

/// A line for whoever watches; if nobody can read it, there is nobody to tell.
fn say(line: &str) {
    drop(writeln!(io::stderr(), "delay-server: {line}"));
}
