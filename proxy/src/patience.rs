//! How long a client may take, looked at without a cost to requests.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Sleep, sleep};

use crate::config::Config;
use crate::idle_clock::IdleClock;

/// What a client is doing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doing {
    /// It is in the middle of sending a request's head.
    pub(crate) head_is_open: bool,
    /// It has no exchange open.
    pub(crate) is_idle: bool,
    /// How many requests it has made.
    pub(crate) served: u64,
}

/// What a client took too long for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// To send a request's head.
    Head,
    /// To ask for anything.
    Idle,
}

/// The clocks that run for one client.
#[derive(Default)]
pub(crate) struct Patience {
    /// Set while a head is on its way.
    head_deadline: Option<Pin<Box<Sleep>>>,
    idle: IdleClock,
}

impl Patience {
    /// Ready when the client has taken too long.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        config: &Config,
        doing: Doing,
    ) -> Poll<Late> {
        if self.poll_head(cx, config, doing).is_ready() {
            return Poll::Ready(Late::Head);
        }
        let idle = (doing.is_idle, doing.served);
        let late = self.idle.poll(cx, config.idle_timeout, idle);
        late.map(|()| Late::Idle)
    }

    fn poll_head(&mut self, cx: &mut Context<'_>, config: &Config, doing: Doing) -> Poll<()> {
        if !doing.head_is_open {
            self.head_deadline = None;
            return Poll::Pending;
        }
        let deadline = || Box::pin(sleep(config.head_timeout));
        let deadline = self.head_deadline.get_or_insert_with(deadline);
        deadline.as_mut().poll(cx)
    }
}
