//! How long a client may take, looked at without a cost to requests.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep};

use crate::config::Config;

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
    /// When to see whether the client has been idle since, and how many requests it had made.
    idle_check: Option<(Pin<Box<Sleep>>, u64)>,
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
        self.poll_idle(cx, config, doing).map(|()| Late::Idle)
    }

    /// Ready when the client has asked for nothing for the time allowed. It is looked at once in
    /// that time, so that requests pay nothing for it.
    fn poll_idle(&mut self, cx: &mut Context<'_>, config: &Config, doing: Doing) -> Poll<()> {
        let allowed = config.idle_timeout;
        let Doing {
            is_idle, served, ..
        } = doing;
        // What has begun already may end later than this clock starts.
        let before = if served == 0 { 0 } else { u64::MAX };
        let check = || (Box::pin(sleep(allowed)), before);
        let (due, before) = self.idle_check.get_or_insert_with(check);
        while due.as_mut().poll(cx).is_ready() {
            if is_idle && *before == served {
                due.as_mut().reset(Instant::now() + allowed);
                return Poll::Ready(());
            }
            *before = if is_idle { served } else { u64::MAX };
            due.as_mut().reset(Instant::now() + allowed);
        }
        Poll::Pending
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
