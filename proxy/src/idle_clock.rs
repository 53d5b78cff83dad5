//! Tells that nothing has gone on for a while, without a cost to what goes on.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Looks at a connection once in a given time, so that requests pay nothing for it.
#[derive(Default)]
pub(crate) struct IdleClock {
    /// When to see whether the client has been idle since, and how many requests it had made.
    check: Option<(Pin<Box<Sleep>>, u64)>,
}

impl IdleClock {
    /// Ready when the client, idle now or not, has made `served` requests and been idle for
    /// `time`, or for less than three times that.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        time: Duration,
        (is_idle, served): (bool, u64),
    ) -> Poll<()> {
        // What has begun already may end later than this clock starts.
        let before = if served == 0 { 0 } else { u64::MAX };
        let check = || (Box::pin(sleep(time)), before);
        let (due, before) = self.check.get_or_insert_with(check);
        while due.as_mut().poll(cx).is_ready() {
            if is_idle && *before == served {
                self.check = None;
                return Poll::Ready(());
            }
            *before = if is_idle { served } else { u64::MAX };
            due.as_mut().reset(Instant::now() + time);
        }
        Poll::Pending
    }
}
