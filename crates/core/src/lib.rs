//! The vocabulary of skewtap, and its judgement.
//!
//! This crate takes times and facts in and gives values out. It opens no file
//! and no socket, reads no clock and starts no task: whatever needs "now" is
//! given it. Its invariants:
//!
//! - a time is an interval on a named clock ([`clock`]); two clocks meet only
//!   through an offset with bounds;
//! - the ledger's rows add up to the client's span exactly, in integers;
//! - a contradiction is reported as a fault, never clamped away;
//! - no cause without evidence.
#![forbid(unsafe_code)]

pub mod audit;
mod bars;
pub mod cause;
pub mod clock;
pub mod clock_consensus;
mod contradiction;
pub mod endpoint;
pub mod exchange;
pub mod exchange_attributes;
pub mod exchange_detail;
pub mod ids;
pub mod lag_rhythm;
pub mod ledger;
pub mod milestone;
pub mod peer_offset;
pub mod policy;
mod quality;
pub mod reported_span;
pub mod verdict;
pub mod verdict_json;
mod wire_path;
