//! Posting messages, one after the other, again and again where that can help.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use tokio::sync::mpsc;
use url::Url;

use super::message::Message;
use super::{WebhookError, WebhookFormat};
use crate::https_client::{self, HttpsClient};
use crate::metrics::WebhookCounts;

/// Tries made for one message.
const TRIES: u32 = 6;

/// Pauses between two tries: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// How long one try may take.
const POST_TIMEOUT: Duration = Duration::from_secs(10);

/// Who is told.
#[derive(Debug)]
pub(super) struct Receiver {
    client: HttpsClient<Full<Bytes>>,
    uri: Uri,
    /// The address without its path, which may be secret.
    shown: String,
    format: WebhookFormat,
}

/// Why a message was not taken.
struct NotTaken {
    why: String,
    again: bool,
    after: Option<Duration>,
}

impl Receiver {
    /// The receiver at `url`. Nothing is connected yet.
    ///
    /// # Errors
    /// [`WebhookError`], when the settings cannot be used.
    pub(super) fn new(url: &Url, format: WebhookFormat) -> Result<Self, WebhookError> {
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(WebhookError::Url);
        }
        Ok(Self {
            client: https_client::client(url, None, false)?,
            uri: url.as_str().parse().map_err(|_| WebhookError::Url)?,
            shown: url.origin().ascii_serialization(),
            format,
        })
    }

    async fn post(&self, body: Bytes) -> Result<(), NotTaken> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        let agent = concat!("skewtap/", env!("CARGO_PKG_VERSION"));
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let answer = tokio::time::timeout(POST_TIMEOUT, self.client.request(request)).await;
        let not_taken = |why| NotTaken {
            why,
            again: true,
            after: None,
        };
        let answer = answer
            .map_err(|_| not_taken("no answer in time".to_owned()))?
            .map_err(|error| not_taken(error.to_string()))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let after = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|v| v.to_str().ok());
        Err(NotTaken {
            why: status.to_string(),
            again: status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS,
            after: after.and_then(|v| v.parse().ok()).map(Duration::from_secs),
        })
    }
}

/// Posts messages until there are no more.
pub(super) async fn deliver(
    receiver: Receiver,
    mut messages: mpsc::Receiver<Message>,
    counts: WebhookCounts,
) {
    while let Some(message) = messages.recv().await {
        let body = message.body(receiver.format);
        match try_several_times(&receiver, body).await {
            Ok(()) => counts.sent(),
            Err(why) => {
                tracing::warn!(
                    receiver = receiver.shown,
                    why,
                    "a webhook message was not delivered"
                );
                counts.failed();
            }
        }
    }
}

async fn try_several_times(receiver: &Receiver, body: Bytes) -> Result<(), String> {
    let mut pause = PAUSES.0;
    for _ in 1..TRIES {
        match receiver.post(body.clone()).await {
            Ok(()) => return Ok(()),
            Err(not_taken) if not_taken.again => {
                let wish = not_taken.after.unwrap_or_default();
                tokio::time::sleep(wish.max(pause).min(PAUSES.1)).await;
            }
            Err(not_taken) => return Err(not_taken.why),
        }
        pause = pause.saturating_mul(2);
    }
    receiver.post(body).await.map_err(|not_taken| not_taken.why)
}
