//! The collector: receives spans and exchanges over OTLP, brings together what belongs to
//! one client span, judges it, stores the verdict and shows it.
//!
//! In reading order: [`collector`] starts and stops everything; `receive` takes batches and
//! acknowledges them once they are in the `observation_log`; `pipeline` reads that log and
//! takes each batch through [`otlp_decode`], [`matcher`] and the audit of the core into the
//! `store`; `web` answers from the store. Invariants:
//!
//! - what was acknowledged is on disk, and survives the end of the process at any moment;
//! - what cannot be taken is refused and counted, never dropped in silence;
//! - judging something again changes nothing that is stored already.
#![forbid(unsafe_code)]

pub mod collector;
pub mod config;
pub mod matcher;
pub mod observation;
pub mod otlp_decode;

mod announcements;
mod arrival_clock;
mod background;
mod engine;
mod export;
mod grpc_bytes;
mod handover;
mod https_client;
mod metrics;
mod observation_log;
mod onward;
mod otlp_encode;
mod peer_clocks;
mod pipeline;
mod receive;
mod store;
mod web;
mod webhook;

pub use collector::{Addresses, Collector, ServeError, StartError};
pub use config::Config;
pub use export::{ExportConfig, ExportError, ExportProtocol};
pub use https_client::ClientError;
pub use receive::bearer_tokens::TokenError;
pub use receive::tls::{TlsError, TlsFiles};
pub use store::OpenError;
pub use store::retention::Retention;
pub use webhook::{WebhookConfig, WebhookError, WebhookFormat};
