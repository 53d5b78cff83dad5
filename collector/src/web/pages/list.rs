//! The list of exchanges.

use askama::Template;
use skewtap_core::verdict_json::VerdictJson;
use url::form_urlencoded::Serializer;

use super::error_page::PageError;
use super::exchange::path;
use super::format::{Instant, instant, millis, nanoseconds};
use super::headline::{largest_gap, main_finding};
use super::segment_words::title;
use super::since::{self, Choice};
use crate::collector::Addresses;
use crate::store::query::{Page, StoredVerdict};

/// Rows of a page, where the address does not say.
const ROWS: &str = "50";

/// The parameters that the form has a field for.
const FIELDS: [&str; 4] = ["flagged", "service", "cause", "since"];

/// Seconds between two loads of a page that keeps itself fresh.
const REFRESH: &str = "5";

/// What is asked of the list, as its address has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListRequest {
    /// What narrows the list.
    filters: Vec<(String, String)>,
    cursor: Option<String>,
    /// Seconds between two loads.
    refresh: Option<u16>,
}

impl ListRequest {
    /// Takes the parameters of an address apart, and gives those the API's filter knows.
    ///
    /// # Errors
    /// [`PageError::Refresh`]. The rest is for the filter to judge.
    pub(super) fn read(
        parameters: Vec<(String, String)>,
    ) -> Result<(Self, Vec<(String, String)>), PageError> {
        let mut request = Self::default();
        let mut for_filter = Vec::new();
        // A form sends the fields that were left empty, too. An edge may have an empty name.
        let said = |(name, value): &(String, String)| {
            !value.is_empty() || !FIELDS.contains(&name.as_str())
        };
        for (name, value) in parameters.into_iter().filter(said) {
            if name == "refresh" {
                let seconds = value.parse().ok();
                let seconds = seconds.filter(|seconds| (1..=3600).contains(seconds));
                request.refresh = Some(seconds.ok_or(PageError::Refresh(value))?);
                continue;
            }
            if name == "cursor" {
                request.cursor = Some(value.clone());
            } else {
                request.filters.push((name.clone(), value.clone()));
            }
            for_filter.push((name, value));
        }
        if !for_filter.iter().any(|(name, _)| name == "limit") {
            for_filter.push(("limit".to_owned(), ROWS.to_owned()));
        }
        Ok((request, for_filter))
    }

    fn filter(&self, name: &str) -> &str {
        let found = self.filters.iter().find(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }

    fn without_field(&self) -> Vec<(String, String)> {
        let filters = self.filters.iter();
        let carried = filters.filter(|(name, _)| !FIELDS.contains(&name.as_str()));
        carried.cloned().collect()
    }

    /// The address of this list with more parameters.
    fn href(&self, more: &[(&str, &str)]) -> String {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(&self.filters);
        query.extend_pairs(more);
        let query = query.finish();
        if query.is_empty() {
            "/exchanges".to_owned()
        } else {
            format!("/exchanges?{query}")
        }
    }
}

/// The page.
#[derive(Clone, Debug, Template)]
#[template(path = "list.html")]
pub(super) struct ListPage {
    addresses: Addresses,
    flagged_only: bool,
    service: String,
    cause: String,
    since: Vec<Choice>,
    /// What narrows the list and has no field of its own in the form.
    carried: Vec<(String, String)>,
    is_narrowed: bool,
    rows: Vec<RowView>,
    flagged_rows: usize,
    unreadable: usize,
    older_href: Option<String>,
    newest_href: Option<String>,
    refresh: Option<u16>,
    refresh_href: String,
}

/// A row of the list. Lengths are in seconds; `None` where unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowView {
    pub(super) href: String,
    pub(super) flagged: bool,
    pub(super) started: Option<Instant>,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) status: Option<u16>,
    pub(super) outcome: Option<String>,
    pub(super) client_service: Option<String>,
    pub(super) server_service: Option<String>,
    pub(super) client: Option<String>,
    pub(super) server: Option<String>,
    pub(super) wire: Option<String>,
    pub(super) gap: Option<String>,
    pub(super) unexplained: Option<String>,
    pub(super) largest: Option<LargestGap>,
    pub(super) cause: Option<String>,
    pub(super) confidence: Option<String>,
    /// Whether statements about it contradict each other.
    pub(super) contradicts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LargestGap {
    pub(super) title: &'static str,
    pub(super) seconds: String,
}

impl ListPage {
    /// The page for a request and what the store gave for it.
    pub(super) fn of(request: &ListRequest, page: &Page, addresses: Addresses) -> Self {
        let rows: Vec<RowView> = page.verdicts.iter().filter_map(row).collect();
        let cursor = page.next.map(|cursor| cursor.to_string());
        let toggled = match request.refresh {
            Some(_) => request.href(&[]),
            None => request.href(&[("refresh", REFRESH)]),
        };
        Self {
            addresses,
            flagged_only: request.filter("flagged") == "true",
            service: request.filter("service").to_owned(),
            cause: request.filter("cause").to_owned(),
            since: since::choices(request.filter("since")),
            carried: request.without_field(),
            is_narrowed: !request.filters.is_empty() || request.cursor.is_some(),
            flagged_rows: rows.iter().filter(|row| row.flagged).count(),
            unreadable: page.verdicts.len().saturating_sub(rows.len()),
            rows,
            older_href: cursor.map(|cursor| request.href(&[("cursor", &cursor)])),
            newest_href: request.cursor.as_ref().map(|_| request.href(&[])),
            refresh: request.refresh,
            refresh_href: toggled,
        }
    }
}

/// The address of the list of exchanges with that cause.
pub(super) fn href_of_cause(cause: &str) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("cause", cause);
    format!("/exchanges?{}", query.finish())
}

/// `None` when the stored document cannot be read.
pub(super) fn row(stored: &StoredVerdict) -> Option<RowView> {
    let verdict: VerdictJson = serde_json::from_str(&stored.document).ok()?;
    let seconds = |value: Option<f64>| value.map(|value| millis(nanoseconds(value)));
    let finding = main_finding(&verdict);
    Some(RowView {
        href: format!("/exchanges/{}/{}", stored.trace_id, stored.client_span_id),
        flagged: verdict.flagged,
        started: instant(stored.started_ns),
        status: verdict.status,
        outcome: (verdict.outcome != "complete").then(|| verdict.outcome.to_string()),
        client: client(&verdict),
        server: seconds(verdict.server_seconds),
        wire: seconds(verdict.wire_seconds),
        gap: seconds(verdict.gap_seconds),
        unexplained: seconds(verdict.unexplained_seconds),
        largest: largest_gap(&verdict).map(|(segment, row)| LargestGap {
            title: title(segment),
            seconds: millis(nanoseconds(row.lo_seconds)),
        }),
        cause: finding.map(|finding| finding.cause.to_string()),
        confidence: finding.map(|finding| finding.confidence.to_string()),
        path: path(&verdict),
        contradicts: !verdict.faults.is_empty(),
        method: verdict.method,
        client_service: verdict.client_service,
        server_service: verdict.server_service,
    })
}

/// The client's time: its span's length, or about when it read the response.
fn client(verdict: &VerdictJson) -> Option<String> {
    if let Some(seconds) = verdict.client_seconds {
        return Some(millis(nanoseconds(seconds)));
    }
    let bounds = verdict.client_bounds?;
    let middle = f64::midpoint(bounds.lo_seconds, bounds.hi_seconds);
    Some(format!("~{}", millis(nanoseconds(middle))))
}
