//! `/healthz` and `/metrics`.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use skewtap_host::Watcher;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::capture_thread::SeenPackets;
use crate::metrics::Metrics;

/// Most connections at once; more wait to be accepted.
const MOST_CONNECTIONS: usize = 64;

/// Pause after a failed accept, such as for too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// What is shown.
#[derive(Clone)]
pub(crate) struct Observed {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) packets: Option<SeenPackets>,
    pub(crate) watcher: Option<Arc<Watcher>>,
}

impl Observed {
    fn text(&self) -> Result<String, std::fmt::Error> {
        if let Some(packets) = &self.packets {
            self.metrics.capture(packets.stats());
        }
        if let Some(watcher) = &self.watcher {
            self.metrics.watcher(watcher.counters());
        }
        self.metrics.text()
    }
}

/// Serves until `stop`.
pub(crate) async fn serve(listener: TcpListener, observed: Observed, stop: CancellationToken) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(error = %error, "admin address not served");
            return;
        }
    };
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let accepting = async {
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            let socket = match listener.accept().await {
                Ok((socket, _)) => socket,
                Err(error) => {
                    tracing::warn!(error = %error, "admin connection not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let observed = observed.clone();
            tokio::spawn(async move {
                let service = service_fn(|request| {
                    let response = answer(&observed, &request);
                    async move { Ok::<_, Infallible>(response) }
                });
                let http = Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(socket), service);
                if let Err(error) = http.await {
                    tracing::debug!(error = %error, "admin connection ended");
                }
                drop(permit);
            });
        }
    };
    stop.run_until_cancelled(accepting).await;
}

fn answer(observed: &Observed, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let known = matches!(request.uri().path(), "/healthz" | "/metrics");
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/healthz") => (StatusCode::OK, PLAIN, "ok\n".to_owned()),
        (&Method::GET | &Method::HEAD, "/metrics") => match observed.text() {
            Ok(text) => (StatusCode::OK, OPENMETRICS, text),
            Err(error) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                PLAIN,
                format!("{error}\n"),
            ),
        },
        _ if known => (
            StatusCode::METHOD_NOT_ALLOWED,
            PLAIN,
            "only GET\n".to_owned(),
        ),
        _ => (
            StatusCode::NOT_FOUND,
            PLAIN,
            "only /healthz and /metrics\n".to_owned(),
        ),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
