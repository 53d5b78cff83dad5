//! Which sources of facts are at work on this machine.

use skewtap_core::exchange::SourceState;

/// Which sources of facts are at work, found out by trying them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// Look-ups of receive queues.
    pub queues: SourceState,
    /// Samples of processes. `Used` says that samples can be taken at all; what a given process
    /// does not let this user see is told with that process.
    pub processes: SourceState,
}
