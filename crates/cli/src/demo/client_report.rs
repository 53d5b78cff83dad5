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
    /// How often it slept without an eye on its socket.
    pub(super) blind_sleeps: u32,
    /// Whether the response lay in the socket the moment it woke from such a sleep.
    pub(super) slept_over_response: bool,
}

impl ClientReport {
    /// What the client took longer than the server, in seconds.
    pub(super) fn lag_seconds(&self) -> f64 {
        self.client_seconds - self.server_seconds
    }

    /// Whether a gap is planted here: the client slept over its response, for longer than
    /// what a verdict flags.
    pub(super) fn is_planted(&self) -> bool {
        self.slept_over_response && self.lag_seconds() > flag_above_seconds()
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
