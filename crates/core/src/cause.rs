//! The causes that can be named, each in a file of its own.
//!
//! A cause is named only when its own evidence was observed and its neighbours'
//! was looked for and not found. A number that looks familiar is never enough.

pub mod client_blind_sleep;

use crate::exchange::ExchangeRecord;
use crate::ledger::Row;
use crate::policy::Policy;
use crate::verdict::Finding;

/// The names of all causes, for those who have to know a name from a slip of the pen.
pub const NAMES: &[&str] = &[client_blind_sleep::NAME];

/// Looks for a cause of the time in `row`, a gap of `exchange` long enough to ask about.
pub(crate) fn of_row(row: &Row, exchange: &ExchangeRecord, policy: &Policy) -> Option<Finding> {
    client_blind_sleep::look(row, exchange, policy)
}
