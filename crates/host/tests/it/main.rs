//! Real endpoints in real processes, watched through the real kernel.
//!
//! Each test starts this same program again as an endpoint that behaves in a planted way and
//! tells its own clock before and after the act; the watcher, which knows nothing of that, must
//! give an interval that overlaps it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test fails by panicking")]

mod activities;
mod addresses;
mod client_pick_up;
mod endpoint;
mod endpoint_process;
mod limits;
mod privileged;
mod server_pick_up;
