//! Reads verdicts from a collector's API, and counters from anything that has `/metrics`.

use std::fmt::Display;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::de::DeserializeOwned;
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
    /// The answer is not JSON of the form that was asked for.
    #[error("{uri} does not answer with the JSON that was asked for")]
    Json {
        /// What was asked.
        uri: Uri,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// One part's HTTP address.
pub(crate) struct ApiClient {
    authority: String,
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl ApiClient {
    /// The API at `authority`, which is `host:port`.
    pub(crate) fn new(authority: impl Display) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let authority = authority.to_string();
        Self { authority, client }
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
        self.json(&format!("/api/v1/exchanges/{trace_id}/{span_id}"))
            .await
    }

    /// What is answered at `path`, read from JSON; `None` where nothing is.
    ///
    /// # Errors
    /// [`ApiError`].
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, ApiError> {
        let (uri, body) = self.get(path).await?;
        let Some(body) = body else {
            return Ok(None);
        };
        serde_json::from_slice(&body)
            .map(Some)
            .map_err(|source| ApiError::Json { uri, source })
    }

    /// The text of `/metrics`; empty where there is none.
    ///
    /// # Errors
    /// [`ApiError`].
    pub(crate) async fn metrics(&self) -> Result<String, ApiError> {
        let (_, body) = self.get("/metrics").await?;
        Ok(String::from_utf8_lossy(&body.unwrap_or_default()).into_owned())
    }

    async fn get(&self, path: &str) -> Result<(Uri, Option<Bytes>), ApiError> {
        let uri = format!("http://{}{path}", self.authority);
        let uri: Uri = uri
            .parse()
            .map_err(|source| ApiError::Address { uri, source })?;
        match timeout(TIMEOUT, self.fetch(&uri)).await {
            Ok(body) => Ok((uri, body?)),
            Err(_) => Err(ApiError::Timeout { uri }),
        }
    }

    async fn fetch(&self, uri: &Uri) -> Result<Option<Bytes>, ApiError> {
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
        Ok(Some(body))
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
