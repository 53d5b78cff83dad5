//! A message about a group of flagged verdicts, in either format.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::WebhookFormat;
use super::notice::{GroupKey, Notice};

/// The version of the JSON format; goes up when a field changes its meaning or goes.
const VERSION: u32 = 1;

/// What is told at once.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// Whom it is about.
    pub(super) group: GroupKey,
    /// Verdicts it stands for.
    pub(super) count: u64,
    /// The time in which they came.
    pub(super) within: Duration,
    /// The one that lost the most time.
    pub(super) worst: Notice,
}

impl Message {
    /// The body of the request.
    pub(super) fn body(&self, format: WebhookFormat) -> Bytes {
        let document = match format {
            WebhookFormat::Json => self.json(),
            WebhookFormat::Slack => json!({ "text": self.text() }),
        };
        document.to_string().into()
    }

    fn json(&self) -> serde_json::Value {
        let (group, worst) = (&self.group, &self.worst);
        json!({
            "version": VERSION,
            "event": "flagged",
            "client_service": group.client_service,
            "server_service": group.server_service,
            "route": group.route,
            "cause": group.cause,
            "count": self.count,
            "within_seconds": self.within.as_secs_f64(),
            "worst": {
                "trace_id": worst.trace_id.to_string(),
                "client_span_id": worst.client_span_id.to_string(),
                "method": worst.method,
                "path": worst.path,
                "segment": worst.segment,
                "confidence": worst.confidence,
                "lost_seconds": seconds(worst.lost_ns),
                "client_seconds": worst.client_ns.map(seconds),
                "server_seconds": worst.server_ns.map(seconds),
                "page": worst.page,
            },
        })
    }

    fn text(&self) -> String {
        let (group, worst) = (&self.group, &self.worst);
        let exchanges = if self.count == 1 {
            "exchange"
        } else {
            "exchanges"
        };
        let mut text = format!(
            "*{}*: {} {exchanges} from {} to {} ({}). At worst {:.3} s in `{}`",
            escaped(&group.cause),
            self.count,
            escaped(&group.client_service),
            escaped(&group.server_service),
            escaped(&group.route),
            seconds(worst.lost_ns),
            worst.segment,
        );
        if let (Some(client), Some(server)) = (worst.client_ns, worst.server_ns) {
            let (client, server) = (seconds(client), seconds(server));
            text.push_str(&format!(": client {client:.3} s, server {server:.3} s"));
        }
        text.push_str(&format!(
            ". <{}|{} {}>",
            worst.page,
            escaped(&worst.method),
            escaped(&worst.path)
        ));
        text
    }
}

/// The three characters that have a meaning in Slack's text; and no line or link may be broken.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '`' | '*' => out.push(' '),
            character if character.is_control() => out.push(' '),
            character => out.push(character),
        }
    }
    out
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a double has more digits than a length needs"
)]
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
