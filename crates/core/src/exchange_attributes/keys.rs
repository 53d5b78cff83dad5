//! The keys of the attributes, but for those of the stamps, which [`Milestone::stamp_key`] gives.
//!
//! [`Milestone::stamp_key`]: crate::milestone::Milestone

pub(super) const METHOD: &str = "http.request.method";
pub(super) const SCHEME: &str = "url.scheme";
pub(super) const PATH: &str = "url.path";
pub(super) const AUTHORITY: &str = "skewtap.authority";
pub(super) const STATUS: &str = "http.response.status_code";
pub(super) const OUTCOME: &str = "skewtap.outcome";
pub(super) const SAMPLED: &str = "skewtap.sampled";
pub(super) const REQUEST_BYTES: &str = "skewtap.request.bytes";
pub(super) const RESPONSE_BYTES: &str = "skewtap.response.bytes";
pub(super) const DOWN_STREAM: &str = "skewtap.down.stream";
pub(super) const UP_STREAM: &str = "skewtap.up.stream";
pub(super) const CLIENT_QUEUE: &str = "skewtap.client.queue";
pub(super) const SERVER_QUEUE: &str = "skewtap.server.queue";
pub(super) const CLIENT_PROCESS: &str = "skewtap.client.process";
pub(super) const SERVER_PROCESS: &str = "skewtap.server.process";
pub(super) const SOURCES: &str = "skewtap.sources";
pub(super) const CLOCK_STEP: &str = "skewtap.clock_step_ns";

/// The keys of what is told of one connection.
pub(super) struct LegKeys {
    pub(super) local: &'static str,
    pub(super) peer: &'static str,
    pub(super) earlier_exchanges: &'static str,
    pub(super) tcp: &'static str,
}

pub(super) const DOWN: LegKeys = LegKeys {
    local: "skewtap.down.local",
    peer: "skewtap.down.peer",
    earlier_exchanges: "skewtap.down.earlier_exchanges",
    tcp: "skewtap.down.tcp",
};

pub(super) const UP: LegKeys = LegKeys {
    local: "skewtap.up.local",
    peer: "skewtap.up.peer",
    earlier_exchanges: "skewtap.up.earlier_exchanges",
    tcp: "skewtap.up.tcp",
};
