//! One call to the server: a request that names a span, and how it went.

use std::time::Duration;

use otlp_json::{TraceContext, quote};

use crate::easy::{self, Easy, Method, Request, Transfer};
use crate::options::{MethodName, Options};

pub(crate) struct Call {
    /// The ids that went out in `traceparent`.
    pub(crate) context: TraceContext,
    pub(crate) url: String,
    pub(crate) method: MethodName,
    pub(crate) delay: Duration,
    pub(crate) transfer: Transfer,
}

impl Call {
    /// Makes the call that the options describe, on a connection the handle may still have.
    pub(crate) fn make(easy: &mut Easy, options: &Options) -> Result<Self, String> {
        let context = TraceContext::new_trace();
        let url = url(options);
        let body = vec![b'x'; options.body];
        let request = Request {
            url: &url,
            proxy: &options.proxy,
            method: match options.method {
                MethodName::Get => Method::Get,
                MethodName::Post => Method::Post {
                    body,
                    expect_continue: false,
                },
                MethodName::Expect => Method::Post {
                    body,
                    expect_continue: true,
                },
            },
            headers: vec![format!("traceparent: {}", context.traceparent())],
            timeout_ms: options.timeout_ms,
        };
        let transfer = easy.perform(&request)?;
        let delay = Duration::from_millis(options.delay_ms);
        Ok(Self {
            context,
            url,
            method: options.method,
            delay,
            transfer,
        })
    }

    /// The call as one line of JSON. The lag is what the client needed beyond the delay it asked
    /// for; it is negative if the transfer ended before.
    pub(crate) fn json_line(&self) -> String {
        let client = self.transfer.duration.as_secs_f64();
        let delay = self.delay.as_secs_f64();
        format!(
            "{{\"libcurl\":{},\"method\":{},\"delay_seconds\":{delay:.6},\
             \"client_seconds\":{client:.6},\"lag_seconds\":{:.6},\"http_status\":{},\
             \"curlcode\":{},\"trace_id\":\"{}\",\"span_id\":\"{}\",\"local_port\":{}}}\n",
            quote(&easy::user_agent()),
            quote(self.method.http()),
            client - delay,
            number_or_null(self.transfer.status),
            self.transfer
                .failure
                .as_ref()
                .map_or(0, |failure| failure.code),
            self.context.trace_id,
            self.context.span_id,
            number_or_null(self.transfer.local_port),
        )
    }
}

fn url(options: &Options) -> String {
    let mut url = format!("http://{}/?delay_ms={}", options.server, options.delay_ms);
    if options.delay_100_ms > 0 {
        url.push_str(&format!("&delay100_ms={}", options.delay_100_ms));
    }
    if options.no_100 {
        url.push_str("&no100=1");
    }
    url
}

fn number_or_null(number: Option<u16>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}
