//! A client's own account of its request. It is the truth that verdicts are held against, so
//! nothing in it comes from the proxy or the collector.

use serde::{Deserialize, Serialize};
use skewtap_core::policy::Policy;

use crate::args::Behaviour;

/// What one client printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ClientReport {
    /// How it waited.
    pub(super) behaviour: Behaviour,
    /// The delay it asked for, in seconds.
    pub(super) delay_seconds: f64,
    /// The trace it began.
    pub(super) trace_id: String,
    /// Its span.
    pub(super) span_id: String,
    /// Status of the response.
    pub(super) status: u16,
    /// From before it connected until it had read the response, in seconds.
    pub(super) client_seconds: f64,
    /// How long the server says it had the request, in seconds.
    pub(super) server_seconds: f64,
    /// From its start until the request was handed to its kernel, in seconds.
    pub(super) before_send_seconds: f64,
    /// From the response's arrival at its kernel until it was read, in seconds.
    pub(super) unread_seconds: f64,
    /// How often it slept without an eye on its socket.
    pub(super) blind_sleeps: u32,
    /// Whether the response lay in the socket the moment it woke from such a sleep.
    pub(super) slept_over_response: bool,
}

/// What is to be found in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Truth {
    /// The client slept over its response, for longer than what a verdict flags.
    Planted,
    /// No part of the time the client itself saw passing in the client is that long.
    Healthy,
    /// The client was late by that much, though not by its wait loop: the machine is busy.
    Disturbed,
}

impl ClientReport {
    /// What is to be found.
    pub(super) fn truth(&self) -> Truth {
        let flag_above = flag_above_seconds();
        if self.slept_over_response && self.unread_seconds > flag_above {
            Truth::Planted
        } else if self.before_send_seconds + self.unread_seconds > flag_above {
            Truth::Disturbed
        } else {
            Truth::Healthy
        }
    }
}

/// The gap above which a verdict flags, in seconds.
pub(super) fn flag_above_seconds() -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a threshold of milliseconds is far below where a double loses nanoseconds"
    )]
    let nanoseconds = Policy::default().flag_above_ns as f64;
    nanoseconds / 1e9
}
