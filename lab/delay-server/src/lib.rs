//! A loopback HTTP/1.1 server that answers after the delay that the request asks for, and reports
//! an OpenTelemetry server span for each answer.
//!
//! It stands for the server side of a measured call: its delay is known beforehand, so whatever
//! a client needs beyond it was lost somewhere else. One thread serves one connection, as plainly
//! as can be. The query of a request steers its answer:
//!
//! | key | meaning |
//! | --- | --- |
//! | `delay_ms` | wait so long between the end of the request's body and the answer |
//! | `delay100_ms` | wait so long before `100 Continue`, where the request expects one |
//! | `no100=1` | never send `100 Continue` |
#![forbid(unsafe_code)]

mod collector_url;
mod connection;
mod request_head;
mod server;
mod server_span;
mod span_queue;

pub use collector_url::{BadCollectorUrl, CollectorUrl};
pub use server::{DelayServer, Settings};
