//! The one entry: what was seen and said of one client span, in; a verdict, out.

use crate::clock::{ClientClock, ClockOffset, ProxyClock, ServerClock};
use crate::exchange::ExchangeRecord;
use crate::policy::Policy;
use crate::reported_span::ReportedSpan;
use crate::verdict::Verdict;

/// Everything that belongs to one client span.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The exchanges, in the order of their first byte: several after retries or redirects.
    pub exchanges: Vec<ExchangeRecord>,
    /// The client's span, if it arrived.
    pub client: Option<ReportedSpan>,
    /// The servers' spans that arrived, at most one for each exchange, in the same order.
    pub servers: Vec<ReportedSpan>,
}

/// What other exchanges told of the clocks of this one's endpoints.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownClocks {
    /// Bounds on the client's clock, if known.
    pub client: Option<ClockOffset<ClientClock, ProxyClock>>,
    /// Bounds on the server's clock, if known.
    pub server: Option<ClockOffset<ServerClock, ProxyClock>>,
}

/// Judges what belongs to one client span. `None` when there is nothing that names one.
#[must_use]
pub fn audit(observed: &Observed, clocks: &KnownClocks, policy: &Policy) -> Option<Verdict> {
    let _ = (observed, clocks, policy);
    None
}
