//! Where verdicts go besides the store. Nothing here waits.

use prost::Message;
use skewtap_core::verdict::Verdict;

use crate::export::write_back;
use crate::export::{ExportQueue, Origin};
use crate::pipeline::Told;
use crate::store::verdict_row::Written;
use crate::webhook::{Notice, WebhookQueue};

/// The ways out.
#[derive(Debug)]
pub(crate) struct Onward {
    /// For spans of verdicts, where they are written back.
    pub(crate) write_back: Option<ExportQueue>,
    /// For flagged verdicts.
    pub(crate) webhook: Option<WebhookQueue>,
    /// The address of the pages.
    pub(crate) pages: String,
}

impl Onward {
    /// Hands a verdict on that the store has taken as `written`. Of a revision people are told
    /// what they were not told before.
    pub(crate) fn verdict(&self, told: &Told, written: &Written) {
        let verdict = &told.verdict;
        if !written.is_news() || (self.write_back.is_none() && self.webhook.is_none()) {
            return;
        }
        let page = self.page(verdict);
        if let Some(webhook) = &self.webhook {
            let was_told = |notice: &Notice| {
                let before = written.before();
                before.is_some_and(|before| before.was_told(notice.cause()))
            };
            Notice::of(verdict, &page)
                .into_iter()
                .filter(|notice| !was_told(notice))
                .for_each(|notice| webhook.offer(notice));
        }
        if let Some(export) = self.write_back.as_ref().filter(|_| told.sampled)
            && let Some(request) = write_back::request(verdict, told.evidence, &page)
        {
            let spans = request.resource_spans.iter().flat_map(|r| &r.scope_spans);
            let spans: usize = spans.map(|scope| scope.spans.len()).sum();
            let body = request.encode_to_vec().into();
            export.offer(
                Origin::WrittenBack,
                u64::try_from(spans).unwrap_or(u64::MAX),
                body,
            );
        }
    }

    fn page(&self, verdict: &Verdict) -> String {
        let base = self.pages.trim_end_matches('/');
        format!(
            "{base}/exchanges/{}/{}",
            verdict.trace_id, verdict.client_span_id
        )
    }
}
