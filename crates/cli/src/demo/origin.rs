//! `skewtap demo-origin`: the server of the demo, instrumented as a server usually is.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, USER_AGENT};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry::KeyValue;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _, TracerProvider as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider, Span,
};
use tokio::net::{TcpListener, TcpStream};

use super::report_spans::{exporter, resource};
use super::work::{self, Answer};
use crate::args::{DemoOriginArgs, LogArgs};
use crate::failure::{Exit, Failure};
use crate::shutdown::Shutdown;
use crate::{runtime, start_line};

/// How long spans wait for company; the SDK's own 5 s would be most of the demo.
const BATCH_DELAY: Duration = Duration::from_millis(200);

/// Serves until it is told to stop.
///
/// # Errors
/// It cannot listen or report, or a later accept failed.
pub(crate) fn run(args: &DemoOriginArgs, log: &LogArgs) -> Result<Exit, Failure> {
    runtime::run(log, "warn", None, async {
        serve_until_told(args).await.map_err(Failure::broken)
    })
}

async fn serve_until_told(args: &DemoOriginArgs) -> anyhow::Result<Exit> {
    let mut shutdown = Shutdown::listen(args.end_with_stdin)?;
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr()?;
    let provider = provider(args)?;
    start_line::announce(&[("traffic", address)], &[])?;

    let tracer = provider.tracer("skewtap-demo-origin");
    tokio::select! {
        () = shutdown.requested() => {}
        failed = accept(&listener, address, &tracer) => failed?,
    }
    // Waits for the exporter, which needs this thread's runtime.
    tokio::task::spawn_blocking(move || provider.shutdown()).await??;
    Ok(Exit::Done)
}

fn provider(args: &DemoOriginArgs) -> anyhow::Result<SdkTracerProvider> {
    let batches = BatchConfigBuilder::default()
        .with_scheduled_delay(BATCH_DELAY)
        .build();
    let processor = BatchSpanProcessor::builder(exporter(&args.otlp)?)
        .with_batch_config(batches)
        .build();
    Ok(SdkTracerProvider::builder()
        .with_span_processor(processor)
        .with_resource(resource("demo-origin"))
        .build())
}

async fn accept(
    listener: &TcpListener,
    address: SocketAddr,
    tracer: &SdkTracer,
) -> anyhow::Result<()> {
    loop {
        let (socket, peer) = listener.accept().await.context("cannot accept")?;
        let site = Site {
            address,
            peer,
            tracer: tracer.clone(),
        };
        tokio::spawn(serve(socket, site));
    }
}

/// One connection, and who reports on it.
struct Site {
    address: SocketAddr,
    peer: SocketAddr,
    tracer: SdkTracer,
}

async fn serve(socket: TcpStream, site: Site) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "no-delay was refused");
    }
    let site = &site;
    let service = service_fn(move |request| async move {
        Ok::<_, Infallible>(traced_answer(site, &request).await)
    });
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(socket), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, peer = %site.peer, "connection broke");
    }
}

async fn traced_answer(site: &Site, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let began = Instant::now();
    let parent = TraceContextPropagator::new().extract(&Headers(request.headers()));
    let mut span = site
        .tracer
        .span_builder(format!("{} {}", request.method(), work::ROUTE))
        .with_kind(SpanKind::Server)
        .with_attributes(request_attributes(site, request))
        .start_with_context(&site.tracer, &parent);
    let response = answer(request, began).await;
    note_status(&mut span, response.status());
    span.end();
    response
}

async fn answer(request: &Request<Incoming>, began: Instant) -> Response<Full<Bytes>> {
    if request.uri().path() != work::ROUTE {
        return plain(StatusCode::NOT_FOUND, "only /work is here\n");
    }
    let Some(delay) = request.uri().query().and_then(work::delay) else {
        return plain(StatusCode::BAD_REQUEST, "delay_ms must be 0 to 60000\n");
    };
    tokio::time::sleep(delay).await;
    let answer = Answer {
        server_seconds: began.elapsed().as_secs_f64(),
    };
    match serde_json::to_string(&answer) {
        Ok(body) => {
            let mut response = plain(StatusCode::OK, body);
            let json = hyper::header::HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            response
        }
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn plain(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}

fn request_attributes(site: &Site, request: &Request<Incoming>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("http.request.method", request.method().to_string()),
        KeyValue::new("url.scheme", "http"),
        KeyValue::new("url.path", request.uri().path().to_owned()),
        KeyValue::new("http.route", work::ROUTE),
        KeyValue::new("server.address", site.address.ip().to_string()),
        KeyValue::new("server.port", i64::from(site.address.port())),
        KeyValue::new("network.peer.address", site.peer.ip().to_string()),
        KeyValue::new("network.peer.port", i64::from(site.peer.port())),
        KeyValue::new("network.protocol.version", "1.1"),
    ];
    if let Some(agent) = request
        .headers()
        .get(USER_AGENT)
        .and_then(|a| a.to_str().ok())
    {
        attributes.push(KeyValue::new("user_agent.original", agent.to_owned()));
    }
    attributes
}

fn note_status(span: &mut Span, status: StatusCode) {
    let code = i64::from(status.as_u16());
    span.set_attribute(KeyValue::new("http.response.status_code", code));
    if status.is_server_error() {
        span.set_status(Status::error(""));
    }
}

/// Request headers as the propagator reads them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}
