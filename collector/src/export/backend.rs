//! One request to a backend, over gRPC or HTTP, and what its answer means.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::{Code, Extensions, Status};
use tonic_types::StatusExt;
use url::Url;

use super::{ExportConfig, ExportError, ExportProtocol};
use crate::grpc_bytes::BytesCodec;
use crate::https_client::{self, HttpsClient};

/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The most that is read of an answer.
const LONGEST_ANSWER: usize = 64 * 1024;

/// The most that is quoted of an answer that is an error.
const LONGEST_QUOTE: usize = 300;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
}

impl Signal {
    const fn grpc_path(self) -> PathAndQuery {
        PathAndQuery::from_static(match self {
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        })
    }

    const fn http_path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
        }
    }
}

/// What a backend did not take of a request that it acknowledged.
#[derive(Debug, Default)]
pub(super) struct Accepted {
    /// Spans it left out.
    pub(super) rejected_spans: u64,
    /// Why.
    pub(super) message: String,
}

/// Why a backend did not take a request.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// It may take it later.
    #[error("{why}")]
    TryAgain {
        /// How long it asks to wait.
        after: Option<Duration>,
        /// What it said, or what was in the way.
        why: String,
    },
    /// It never will.
    #[error("{0}")]
    Refused(String),
}

/// Where spans are sent on to.
#[derive(Debug)]
pub(super) struct Backend {
    /// The address without what may be secret in it.
    shown: String,
    headers: HeaderMap,
    transport: Transport,
}

#[derive(Debug)]
enum Transport {
    Grpc {
        client: HttpsClient<tonic::body::Body>,
        origin: Uri,
    },
    Http {
        client: HttpsClient<Full<Bytes>>,
        traces: Uri,
        metrics: Uri,
    },
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Backend {
    /// The backend of `config`. Nothing is connected yet.
    ///
    /// # Errors
    /// [`ExportError`], when the settings cannot be used.
    pub(super) fn new(config: &ExportConfig) -> Result<Self, ExportError> {
        let url = &config.url;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(ExportError::Url);
        }
        let authorities = config.authorities.as_ref();
        let transport = match config.protocol {
            ExportProtocol::Grpc => Transport::Grpc {
                client: https_client::client(url, authorities, true)?,
                origin: uri(url.as_str())?,
            },
            ExportProtocol::Http => Transport::Http {
                client: https_client::client(url, authorities, false)?,
                traces: uri(signal_url(url, Signal::Traces).as_str())?,
                metrics: uri(signal_url(url, Signal::Metrics).as_str())?,
            },
        };
        Ok(Self {
            shown: url.origin().ascii_serialization(),
            headers: config.headers.iter().cloned().collect(),
            transport,
        })
    }

    /// Sends an export request of `signal` in protobuf once.
    ///
    /// # Errors
    /// [`SendError`] says whether to try again.
    pub(super) async fn send(&self, signal: Signal, body: Bytes) -> Result<Accepted, SendError> {
        let sending = async {
            match (&self.transport, signal) {
                (Transport::Grpc { client, origin }, signal) => {
                    self.grpc(client, origin, signal.grpc_path(), body).await
                }
                (Transport::Http { client, traces, .. }, Signal::Traces) => {
                    self.http(client, traces, body).await
                }
                (
                    Transport::Http {
                        client, metrics, ..
                    },
                    Signal::Metrics,
                ) => self.http(client, metrics, body).await,
            }
        };
        let in_time = tokio::time::timeout(REQUEST_TIMEOUT, sending).await;
        in_time.unwrap_or_else(|_| {
            let seconds = REQUEST_TIMEOUT.as_secs();
            Err(try_again(format!("no answer within {seconds} s")))
        })
    }

    async fn grpc(
        &self,
        client: &HttpsClient<tonic::body::Body>,
        origin: &Uri,
        path: PathAndQuery,
        body: Bytes,
    ) -> Result<Accepted, SendError> {
        let mut grpc = Grpc::with_origin(client.clone(), origin.clone())
            .max_decoding_message_size(LONGEST_ANSWER);
        let metadata = MetadataMap::from_headers(self.headers.clone());
        let request = tonic::Request::from_parts(metadata, Extensions::default(), body);
        grpc.ready()
            .await
            .map_err(|error| try_again(with_causes(&error)))?;
        let answer = grpc.unary(request, path, BytesCodec).await;
        accepted(answer.map_err(|status| grpc_error(&status))?.into_inner())
    }

    async fn http(
        &self,
        client: &HttpsClient<Full<Bytes>>,
        uri: &Uri,
        body: Bytes,
    ) -> Result<Accepted, SendError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("skewtap/", env!("CARGO_PKG_VERSION"))),
        );
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-protobuf"),
        );
        headers.extend(self.headers.clone());
        let answer = client.request(request).await;
        let (parts, body) = answer
            .map_err(|error| try_again(with_causes(&error)))?
            .into_parts();
        let body = Limited::new(body, LONGEST_ANSWER).collect().await;
        let body = body
            .map_err(|error| try_again(error.to_string()))?
            .to_bytes();
        if parts.status.is_success() {
            return accepted(body);
        }
        Err(http_error(parts.status, &parts.headers, &body))
    }
}

fn uri(text: &str) -> Result<Uri, ExportError> {
    text.parse().map_err(|_| ExportError::Url)
}

/// The address for `signal` where `url` is that of the backend, or of its traces.
fn signal_url(url: &Url, signal: Signal) -> Url {
    let mut url = url.clone();
    let base = url.path().trim_end_matches('/');
    let base = base
        .strip_suffix(Signal::Traces.http_path())
        .unwrap_or(base);
    let path = format!("{base}{}", signal.http_path());
    url.set_path(&path);
    url
}

/// What an answer acknowledges; those of all signals have one form. One that cannot be read acknowledges everything: trying again
/// would double what is there.
fn accepted(body: Bytes) -> Result<Accepted, SendError> {
    let answer = ExportTraceServiceResponse::decode(body).unwrap_or_default();
    let partial = answer.partial_success.unwrap_or_default();
    Ok(Accepted {
        rejected_spans: u64::try_from(partial.rejected_spans).unwrap_or(0),
        message: partial.error_message,
    })
}

/// Which codes ask for another try is said by OTLP; where no answer came, there is one.
fn grpc_error(status: &Status) -> SendError {
    let after = status
        .get_details_retry_info()
        .map(|info| info.retry_delay.unwrap_or_default());
    let unanswered = std::error::Error::source(status).is_some();
    let again = match status.code() {
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => true,
        Code::ResourceExhausted => after.is_some(),
        _ => unanswered,
    };
    let why = format!("{:?}: {}", status.code(), with_causes(status));
    if again {
        SendError::TryAgain { after, why }
    } else {
        SendError::Refused(why)
    }
}

fn http_error(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> SendError {
    let said = tonic_types::Status::decode(body)
        .map(|status| status.message)
        .ok()
        .filter(|message| !message.is_empty())
        .unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let quoted = said
        .get(..said.floor_char_boundary(LONGEST_QUOTE))
        .unwrap_or_default();
    let why = format!("{status}: {quoted}");
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => SendError::TryAgain {
            after: retry_after(headers),
            why,
        },
        _ => SendError::Refused(why),
    }
}

/// The pause that a header asks for in seconds. A date is passed over: clocks may differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse();
    seconds.ok().map(Duration::from_secs)
}

const fn try_again(why: String) -> SendError {
    SendError::TryAgain { after: None, why }
}

/// An error and what is behind it, on one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_signal_is_that_of_the_backend_or_of_its_traces() {
        for (url, traces, metrics) in [
            (
                "http://a:1",
                "http://a:1/v1/traces",
                "http://a:1/v1/metrics",
            ),
            (
                "http://a:1/v1/traces",
                "http://a:1/v1/traces",
                "http://a:1/v1/metrics",
            ),
            (
                "http://a/otlp/",
                "http://a/otlp/v1/traces",
                "http://a/otlp/v1/metrics",
            ),
        ] {
            let url: Url = url.parse().unwrap();
            assert_eq!(signal_url(&url, Signal::Traces).as_str(), traces);
            assert_eq!(signal_url(&url, Signal::Metrics).as_str(), metrics);
        }
    }
}
