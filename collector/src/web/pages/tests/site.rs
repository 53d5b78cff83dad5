//! The pages as a browser asks for them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use skewtap_core::ids::SpanId;
use skewtap_core::verdict::Verdict;
use skewtap_simulator::scenario::Scenario;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::cases::{MS, judged, observed};
use crate::announcements::Announcements;
use crate::arrival_clock::ArrivalClock;
use crate::collector::Addresses;
use crate::metrics::Metrics;
use crate::peer_clocks::SharedClocks;
use crate::store::Store;
use crate::store::packed::Packer;
use crate::store::query::Queries;
use crate::store::retention::Retention;
use crate::store::tests::row_of;
use crate::store::writer::{self, Limits, Results, StoreWriter};
use crate::web::{Listeners, WebState, router};

/// Where the collector of a site would listen.
pub(super) const ADDRESSES: Addresses = Addresses {
    otlp_grpc: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 24317),
    otlp_http: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 24318),
    http: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 24390),
};

/// The real routes on a real store that holds some verdicts.
pub(super) struct Site {
    router: Router,
    writer: StoreWriter,
    writing: Option<JoinHandle<()>>,
    directory: tempfile::TempDir,
}

impl Site {
    pub(super) async fn with(verdicts: Vec<Verdict>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let queries = Queries::new(store.path.clone());
        let limits = Limits {
            log_bytes: u64::MAX,
            retention: Retention::default(),
        };
        let (writer, worker) = writer::prepare(store, limits).unwrap();
        let health = worker.health();
        let writing = std::thread::spawn(move || worker.run());
        let clock = ArrivalClock::new();
        let rows = verdicts.iter().map(|verdict| row_of(verdict, 1));
        let results = Results {
            rows: rows.collect(),
            log_needed_from: 0,
            now_ns: 0,
        };
        let to = writer.clone();
        let written = tokio::task::spawn_blocking(move || to.write_results(results));
        assert_eq!(written.await.unwrap().unwrap().len(), verdicts.len());
        Self {
            router: router(WebState {
                queries,
                health,
                metrics: Arc::new(Metrics::new(1)),
                clock,
                addresses: ADDRESSES,
                clocks: SharedClocks::new(0),
                announcements: Announcements::new(),
                stopping: CancellationToken::new(),
                listeners: Listeners::default(),
            }),
            writer,
            writing: Some(writing),
            directory,
        }
    }

    /// Makes what is stored of one span no verdict.
    pub(super) fn damage(&self, span: &str) {
        let database = self.directory.path().join("skewtap.db");
        let connection = rusqlite::Connection::open(database).unwrap();
        let span: SpanId = span.parse().unwrap();
        let no_json = Packer::new().unwrap().pack(b"{").unwrap();
        let damaged = connection.execute(
            "UPDATE verdict_document SET verdict = ?2
             WHERE id = (SELECT id FROM verdict WHERE client_span_id = ?1)",
            (span.bytes(), no_json),
        );
        assert_eq!(damaged, Ok(1));
    }

    pub(super) async fn get(&self, address: &str) -> Response<Body> {
        let request = Request::get(address).body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(super) async fn page(&self, address: &str) -> (StatusCode, String) {
        let response = self.get(address).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let writer = self.writer.clone();
        let writing = self.writing.take().unwrap();
        // The writer's calls block, which a thread of the runtime may not.
        std::thread::spawn(move || {
            writer.close();
            writing.join().unwrap();
        })
        .join()
        .unwrap();
    }
}

/// As many healthy calls, a second apart, each under a span of its own.
pub(super) fn healthy(count: u8) -> Vec<Verdict> {
    (0..count)
        .map(|n| {
            let mut verdict = judged(&observed(&Scenario::healthy(i64::from(n) * MS)));
            verdict.client_span_id = SpanId::from_bytes(&[0x80 | n; 8]).unwrap();
            let started = verdict.started_ns.as_mut().unwrap();
            *started += (i64::from(n) + 1) * 1_000 * MS;
            verdict.path = format!("/healthy/{n}");
            verdict
        })
        .collect()
}
