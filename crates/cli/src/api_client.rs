//! Reads verdicts from a collector's API.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer taken, in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// Why a collector's API gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// No such address can be asked.
    #[error("cannot ask {uri}")]
    Address {
        /// What was to be asked.
        uri: String,
        /// What is wrong with it.
        source: hyper::http::uri::InvalidUri,
    },
    /// No connection, or it broke.
    #[error("no answer from {uri}")]
    Connection {
        /// What was asked.
        uri: Uri,
        /// What went wrong.
        source: hyper_util::client::legacy::Error,
    },
    /// It took too long.
    #[error("no answer from {uri} within {TIMEOUT:?}")]
    Timeout {
        /// What was asked.
        uri: Uri,
    },
    /// The answer broke off, or is too long.
    #[error("cannot read the answer of {uri}")]
    Body {
        /// What was asked.
        uri: Uri,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The collector refused.
    #[error("{uri} answers {status}: {words}")]
    Status {
        /// What was asked.
        uri: Uri,
        /// The status.
        status: StatusCode,
        /// The body, or its beginning.
        words: String,
    },
    /// The answer is not JSON.
    #[error("{uri} does not answer with JSON")]
    Json {
        /// What was asked.
        uri: Uri,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// One collector's API.
pub(crate) struct ApiClient {
    address: SocketAddr,
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl ApiClient {
    /// The API at `address`.
    pub(crate) fn new(address: SocketAddr) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { address, client }
    }

    /// The verdict on one client span; `None` while there is none.
    ///
    /// # Errors
    /// [`ApiError`].
    pub(crate) async fn exchange(
        &self,
        trace_id: &str,
        span_id: &str,
    ) -> Result<Option<Value>, ApiError> {
        self.get(&format!("/api/v1/exchanges/{trace_id}/{span_id}"))
            .await
    }

    async fn get(&self, path: &str) -> Result<Option<Value>, ApiError> {
        let uri = format!("http://{}{path}", self.address);
        let uri: Uri = uri
            .parse()
            .map_err(|source| ApiError::Address { uri, source })?;
        timeout(TIMEOUT, self.fetch(&uri))
            .await
            .map_err(|_| ApiError::Timeout { uri })?
    }

    async fn fetch(&self, uri: &Uri) -> Result<Option<Value>, ApiError> {
        let uri = uri.clone();
        let response = match self.client.get(uri.clone()).await {
            Ok(response) => response,
            Err(source) => return Err(ApiError::Connection { uri, source }),
        };
        let status = response.status();
        let body = match Limited::new(response.into_body(), MAX_ANSWER)
            .collect()
            .await
        {
            Ok(body) => body.to_bytes(),
            Err(source) => return Err(ApiError::Body { uri, source }),
        };
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if !status.is_success() {
            let words = String::from_utf8_lossy(&body).chars().take(200).collect();
            return Err(ApiError::Status { uri, status, words });
        }
        serde_json::from_slice(&body)
            .map(Some)
            .map_err(|source| ApiError::Json { uri, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// A server that gives one answer, and what it was asked.
    async fn ask(answer: &'static str) -> (Result<Option<Value>, ApiError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = ApiClient::new(listener.local_addr().unwrap());
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            socket.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        };
        tokio::join!(client.exchange("aa", "bb"), server)
    }

    #[tokio::test]
    async fn a_verdict_is_read() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"flagged\":true}";
        let (verdict, asked) = ask(answer).await;
        assert_eq!(verdict.unwrap().unwrap()["flagged"], true);
        assert!(asked.starts_with("GET /api/v1/exchanges/aa/bb HTTP/1.1\r\n"));
    }

    #[tokio::test]
    async fn no_verdict_yet_is_no_error() {
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
        assert!(ask(answer).await.0.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_refusal_is_told_in_its_own_words() {
        let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nfull";
        let why = ask(answer).await.0.unwrap_err().to_string();
        assert!(why.ends_with("503 Service Unavailable: full"), "{why}");
    }

    #[tokio::test]
    async fn what_is_not_json_is_refused() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfull";
        assert!(matches!(ask(answer).await.0, Err(ApiError::Json { .. })));
    }
}
