//! Telling people of flagged verdicts without Prometheus: a request to one address for each edge
//! and cause, at most one in a while for each, with the number of exchanges it stands for.
//!
//! The pipeline hands over without waiting; what cannot be taken or delivered is counted.

mod delivery;
mod groups;
mod message;
mod notice;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use url::Url;

use self::delivery::Receiver;
use self::groups::Groups;
use self::message::Message;
pub(crate) use self::notice::Notice;
use crate::https_client::ClientError;
use crate::metrics::{Metrics, WebhookCounts};

/// Verdicts that may wait to be grouped.
const QUEUE: usize = 1024;

/// Messages that may wait to be delivered; groups keep their counts until there is room.
const MESSAGES: usize = 16;

/// How long the first verdict of a group waits for others.
const GATHER: Duration = Duration::from_secs(1);

/// Whom to tell of flagged verdicts. [`WebhookConfig::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct WebhookConfig {
    /// Where messages are posted. May hold a secret, and is never shown whole.
    pub url: Url,
    /// How messages are written.
    pub format: WebhookFormat,
    /// The least time between two messages about one edge and cause; 5 minutes by default.
    pub every: Duration,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookFormat {
    /// Every figure by name.
    Json,
    /// A text for people, as Slack and what is like it take it.
    Slack,
}

impl WebhookConfig {
    /// The defaults for `url`.
    #[must_use]
    pub const fn new(url: Url) -> Self {
        Self {
            url,
            format: WebhookFormat::Json,
            every: Duration::from_secs(300),
        }
    }
}

/// Why nobody can be told.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// It is no address that can be posted to.
    #[error("write it as http://host/path or https://host/path")]
    Url,
    /// No connection could ever be made.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// What tells, ready to be started.
#[derive(Debug)]
pub(crate) struct Webhook {
    receiver: Receiver,
    every: Duration,
}

/// The way there; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct WebhookQueue {
    queue: mpsc::Sender<Notice>,
    counts: WebhookCounts,
}

impl WebhookQueue {
    /// Hands a notice over, or leaves it out and counts it when too many wait.
    pub(crate) fn offer(&self, notice: Notice) {
        if self.queue.try_send(notice).is_err() {
            self.counts.dropped_verdicts.inc();
        }
    }
}

impl Webhook {
    /// A webhook that connects when there is something to tell.
    ///
    /// # Errors
    /// [`WebhookError`], when the settings cannot be used.
    pub(crate) fn new(config: &WebhookConfig) -> Result<Self, WebhookError> {
        Ok(Self {
            receiver: Receiver::new(&config.url, config.format)?,
            every: config.every,
        })
    }

    /// Starts to tell. The task ends when every clone of the queue is dropped and all is told.
    pub(crate) fn start(self, metrics: &Arc<Metrics>) -> (WebhookQueue, JoinHandle<()>) {
        let counts = metrics.webhook.clone();
        let (queue, notices) = mpsc::channel(QUEUE);
        let (messages, to_deliver) = mpsc::channel(MESSAGES);
        let groups = Groups::new(GATHER, self.every);
        let delivering = delivery::deliver(self.receiver, to_deliver, counts.clone());
        let task = tokio::spawn(async move {
            tokio::join!(gather(notices, groups, messages), delivering);
        });
        (WebhookQueue { queue, counts }, task)
    }
}

/// Groups notices, and hands groups on when they are due. Goes on while messages are delivered.
async fn gather(
    mut notices: mpsc::Receiver<Notice>,
    mut groups: Groups,
    messages: mpsc::Sender<Message>,
) {
    loop {
        let due = async {
            match groups.next_due() {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            notice = notices.recv() => match notice {
                Some(notice) => groups.add(notice, Instant::now()),
                None => break,
            },
            () = due => {
                // Waits for room while notices go on into their queue.
                if let (Ok(room), Some(message)) = (messages.reserve().await, groups.take_due(Instant::now())) {
                    room.send(message);
                }
            }
        }
    }
    // At the end everything is due.
    for message in groups.take_all() {
        if messages.send(message).await.is_err() {
            break;
        }
    }
}
