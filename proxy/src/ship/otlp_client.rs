//! A client for one OTLP method over gRPC, on one connection that is made when needed.

use std::fmt;
use std::time::Duration;

use bytes::buf::Chain;
use bytes::{Buf as _, Bytes};
use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::protobuf::read_varint;

/// Longest time for one request, with the connection it may need.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest answer that is read, in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;

const PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Where OpenTelemetry has headers set, such as those that authenticate the sender.
const HEADER_VARIABLES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];

/// Why a request was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportError {
    /// There is no connection.
    #[error("cannot connect to {endpoint}: {source}")]
    Connect {
        endpoint: String,
        source: std::io::Error,
    },
    /// HTTP/2 does not work on the connection, or it broke.
    #[error("{endpoint} does not answer: {source}")]
    Http {
        endpoint: String,
        source: hyper::Error,
    },
    /// An answer that is not one of gRPC.
    #[error("{endpoint} does not speak gRPC: {what}")]
    NotGrpc { endpoint: String, what: String },
    /// The collector refused.
    #[error("{endpoint} refuses with status {code}: {message}")]
    Refused {
        endpoint: String,
        code: String,
        message: String,
    },
    /// It took too long.
    #[error("{endpoint} takes longer than {EXPORT_TIMEOUT:?}")]
    TimedOut { endpoint: String },
}

/// A message in two pieces, so that neither has to be copied.
type Message = Full<Chain<Bytes, Bytes>>;

/// Sends requests to one collector.
pub(super) struct OtlpClient {
    endpoint: Url,
    headers: HeaderMap,
    /// `None` while there is no connection.
    sender: Option<SendRequest<Message>>,
}

impl OtlpClient {
    /// A client for `endpoint`; it connects when first used. Headers come from OpenTelemetry's
    /// variables.
    pub(super) fn new(endpoint: &Url) -> Self {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let headers = HEADER_VARIABLES.into_iter().find_map(set);
        Self {
            endpoint: endpoint.clone(),
            headers: headers.map(|list| headers_of(&list)).unwrap_or_default(),
            sender: None,
        }
    }

    /// Sends one message, `head` and then `spans`, and gives how many of its spans were rejected
    /// for good.
    ///
    /// # Errors
    /// [`ExportError`]; the message may be sent again.
    pub(super) async fn export(&mut self, head: Bytes, spans: Bytes) -> Result<u64, ExportError> {
        let message = Full::new(head.chain(spans));
        let outcome = timeout(EXPORT_TIMEOUT, self.request(message)).await;
        let endpoint = || self.endpoint.to_string();
        let outcome = outcome.unwrap_or_else(|_| {
            Err(ExportError::TimedOut {
                endpoint: endpoint(),
            })
        });
        // Whatever went wrong may have to do with the connection.
        if outcome.is_err() {
            self.sender = None;
        }
        outcome
    }

    async fn request(&mut self, message: Message) -> Result<u64, ExportError> {
        let endpoint = self.endpoint.to_string();
        let broke = |source| ExportError::Http {
            endpoint: endpoint.clone(),
            source,
        };
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await?,
        };
        sender.ready().await.map_err(broke)?;
        let answer = sender.send_request(self.head(message)).await;
        let (head, body) = answer.map_err(broke)?.into_parts();
        if head.status != StatusCode::OK {
            return Err(self.not_grpc(&format!("HTTP status {}", head.status)));
        }
        let body = Limited::new(body, LONGEST_ANSWER).collect().await;
        let body = body.map_err(|error| self.not_grpc(&error))?;
        let trailers = body.trailers().unwrap_or(&head.headers);
        match trailers.get("grpc-status").map(HeaderValue::as_bytes) {
            Some(b"0") => {
                self.sender = Some(sender);
                Ok(rejected(&body.to_bytes()))
            }
            Some(code) => Err(ExportError::Refused {
                endpoint,
                code: String::from_utf8_lossy(code).into_owned(),
                message: message_of(trailers),
            }),
            None => Err(self.not_grpc(&"no status in the answer")),
        }
    }

    fn head(&self, message: Message) -> Request<Message> {
        let mut request = Request::new(message);
        *request.method_mut() = http::Method::POST;
        let uri = format!("http://{}{PATH}", self.endpoint.authority());
        // A URL that was checked has an authority that a request can have.
        *request.uri_mut() = uri.parse().unwrap_or_default();
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        let agent = concat!("skewtap-proxy/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        request
    }

    async fn connect(&self) -> Result<SendRequest<Message>, ExportError> {
        let endpoint = || self.endpoint.to_string();
        let host = self.endpoint.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.endpoint.port_or_known_default().unwrap_or_default();
        let connecting = async {
            let socket = TcpStream::connect((host, port)).await?;
            socket.set_nodelay(true)?;
            Ok(socket)
        };
        let socket = connecting.await.map_err(|source| ExportError::Connect {
            endpoint: endpoint(),
            source,
        })?;
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
            .await
            .map_err(|source| ExportError::Http {
                endpoint: endpoint(),
                source,
            })?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = %error, "connection to the collector broke");
            }
        });
        Ok(sender)
    }

    fn not_grpc(&self, what: &dyn fmt::Display) -> ExportError {
        ExportError::NotGrpc {
            endpoint: self.endpoint.to_string(),
            what: what.to_string(),
        }
    }
}

/// How many spans an `ExportTraceServiceResponse` says were rejected. It is read as far as that
/// takes: field 1 of field 1.
fn rejected(message: &[u8]) -> u64 {
    let read = |message: &[u8]| {
        let partial_success = message.get(5..)?.strip_prefix(&[0x0a])?;
        let (_, fields) = read_varint(partial_success)?;
        let (count, _) = read_varint(fields.strip_prefix(&[0x08])?)?;
        Some(count)
    };
    read(message).unwrap_or(0)
}

fn message_of(trailers: &HeaderMap) -> String {
    let message = trailers.get("grpc-message").map(HeaderValue::as_bytes);
    let message = String::from_utf8_lossy(message.unwrap_or_default());
    percent_decode_str(&message)
        .decode_utf8_lossy()
        .into_owned()
}

/// Headers from a list such as `name=value,other=value`, with values percent-encoded. What is
/// not of that form is left out.
fn headers_of(list: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list.split(',').filter_map(|one| one.split_once('=')) {
        let value = percent_decode_str(value.trim()).collect::<Vec<u8>>();
        let name = HeaderName::from_bytes(name.trim().as_bytes());
        if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_bytes(&value)) {
            value.set_sensitive(true);
            headers.append(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_from_a_list() {
        let headers = headers_of("authorization=Bearer%20a+b%3D, x-tenant = one ,nonsense,b ad=1");
        let found: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(
            found,
            [("authorization", "Bearer a+b="), ("x-tenant", "one")]
        );
    }

    #[test]
    fn rejected_spans_are_read_from_the_answer() {
        assert_eq!(rejected(b"\0\0\0\0\0"), 0);
        assert_eq!(rejected(b"\0\0\0\0\x05\x0a\x03\x08\xac\x02"), 300);
        assert_eq!(rejected(b"\0\0\0\0\x07\x0a\x05\x12\x03why"), 0);
        assert_eq!(rejected(b"\0\0\0\0\x05\x0a\x03\x08\xac"), 0);
    }
}
