//! The proxy from outside: raw sockets on both sides, and a collector that
//! takes its records.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![expect(clippy::print_stderr, reason = "what was not run is said")]
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "numbers in tests are small"
)]

mod collector;
mod harness;
mod in_turns;
mod metrics;
mod not_run;
mod pki;
mod streams;
mod wire;

mod connections;
mod context;
mod dual_stack;
mod expect;
mod faithfulness;
mod faithfulness_of_closing;
mod faithfulness_of_windows;
mod faults;
mod forward;
mod framing;
mod framing_of_responses;
mod grpc;
mod http2;
mod http2_ends;
mod http2_flow;
mod http2_limits;
mod http2_mixed;
mod http2_real_client;
mod http2_stamps;
mod http2_tls;
mod limits;
mod packets;
mod relay;
mod reload;
mod resilience;
mod resting;
mod routes;
mod shipping;
mod stamps;
mod tls;
mod transparent;
mod tunnel;
mod unix_upstream;
mod watches;
