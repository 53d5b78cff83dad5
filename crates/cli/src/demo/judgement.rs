//! Holds a verdict against what the client itself knows.

use serde::Serialize;

use super::client_report::{ClientReport, flag_above_seconds};
use super::verdict_document::VerdictDocument;

/// The cause that is planted.
const CAUSE: &str = "client_blind_sleep";
/// Where it must be found: after the response had arrived.
const SEGMENTS: [&str; 2] = ["client_unread", "client_after_arrival"];

/// How a verdict compares with the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Judgement {
    /// A planted gap, found: flagged, with the cause, the segment and the size.
    Found,
    /// A planted gap that was not found, or found as something else.
    Missed,
    /// Nothing planted, nothing flagged.
    Quiet,
    /// Nothing planted, and flagged.
    FalseAlarm,
    /// No verdict with both sides came in time.
    NoVerdict,
}

/// Judges one verdict; with what is wrong with it, if anything.
pub(super) fn judge(
    report: &ClientReport,
    verdict: Option<&VerdictDocument>,
) -> (Judgement, Option<String>) {
    let Some(verdict) = verdict.filter(|verdict| verdict.has_both_sides()) else {
        let why = "no verdict with both sides came in time".to_owned();
        return (Judgement::NoVerdict, Some(why));
    };
    let flagged = verdict.fields.flagged;
    match (report.is_planted(), flagged) {
        (false, false) => (Judgement::Quiet, None),
        (false, true) => (Judgement::FalseAlarm, Some(alarm(report))),
        (true, false) => (Judgement::Missed, Some("not flagged".to_owned())),
        (true, true) => match shortcoming(report, verdict) {
            None => (Judgement::Found, None),
            Some(why) => (Judgement::Missed, Some(why)),
        },
    }
}

fn alarm(report: &ClientReport) -> String {
    let lag = report.lag_seconds();
    if lag > flag_above_seconds() {
        format!(
            "the client itself measured {lag:.3} s beyond the server: is this machine too busy?"
        )
    } else {
        format!("the client itself measured {lag:.3} s beyond the server")
    }
}

/// What a flagged verdict on a planted gap lacks. Its bounds must hold the client's own lag,
/// give or take what is flagged at all: the lag also holds connecting, sending and waking up.
fn shortcoming(report: &ClientReport, verdict: &VerdictDocument) -> Option<String> {
    let findings = &verdict.fields.findings;
    let Some(finding) = findings.iter().find(|finding| finding.cause == CAUSE) else {
        return Some(format!("flagged without the cause {CAUSE}"));
    };
    if !SEGMENTS.contains(&finding.segment.as_ref()) {
        return Some(format!("found in the segment {}", finding.segment));
    }
    let (lag, slack) = (report.lag_seconds(), flag_above_seconds());
    let (lo, hi) = (finding.lo_seconds - slack, finding.hi_seconds + slack);
    (lag < lo || lag > hi).then(|| {
        format!(
            "found as {:.3} to {:.3} s, while the client measured {lag:.3} s",
            finding.lo_seconds, finding.hi_seconds
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Behaviour;
    use serde_json::json;

    fn report(lag_seconds: f64) -> ClientReport {
        ClientReport {
            behaviour: Behaviour::BlindSleep,
            delay_seconds: 1.25,
            trace_id: "aa".to_owned(),
            span_id: "bb".to_owned(),
            status: 200,
            client_seconds: 1.25 + lag_seconds,
            server_seconds: 1.25,
            blind_sleeps: 1,
            slept_over_response: lag_seconds > 0.5,
        }
    }

    fn verdict(flagged: bool, cause: &str, segment: &str, hi: f64) -> VerdictDocument {
        let finding = json!({
            "cause": cause, "segment": segment, "lo_seconds": hi - 0.002, "hi_seconds": hi,
            "confidence": "observed", "evidence": [], "refuted_by": ""
        });
        VerdictDocument::read(json!({
            "trace_id": "aa", "client_span_id": "bb", "method": "GET", "path": "/work",
            "authority": "here", "outcome": "complete", "exchanges": 1,
            "client_seconds": 2.0, "server_seconds": 1.25, "wire_seconds": 1.25,
            "gap_seconds": 0.75, "segments": [], "findings": [finding], "faults": [],
            "flagged": flagged, "quality": {"missing": [], "notes": []}, "bars": []
        }))
        .unwrap()
    }

    fn judged(report: &ClientReport, verdict: &VerdictDocument) -> Judgement {
        judge(report, Some(verdict)).0
    }

    #[test]
    fn a_planted_gap_counts_only_with_cause_segment_and_size() {
        let planted = report(0.75);
        let right = verdict(true, CAUSE, "client_unread", 0.75);
        assert_eq!(judged(&planted, &right), Judgement::Found);
        for wrong in [
            verdict(false, CAUSE, "client_unread", 0.75),
            verdict(true, "client_loop_blocked", "client_unread", 0.75),
            verdict(true, CAUSE, "server_before_span", 0.75),
            verdict(true, CAUSE, "client_unread", 0.69),
            verdict(true, CAUSE, "client_unread", 0.81),
        ] {
            assert_eq!(judged(&planted, &wrong), Judgement::Missed, "{wrong:?}");
        }
    }

    #[test]
    fn a_healthy_exchange_must_stay_unflagged() {
        let healthy = report(0.002);
        let flagged = verdict(true, CAUSE, "client_unread", 0.75);
        let quiet = verdict(false, CAUSE, "client_unread", 0.0);
        assert_eq!(judged(&healthy, &flagged), Judgement::FalseAlarm);
        assert_eq!(judged(&healthy, &quiet), Judgement::Quiet);
    }

    #[test]
    fn one_side_is_not_enough() {
        let mut one_sided = verdict(true, CAUSE, "client_unread", 0.75);
        one_sided.fields.client_seconds = None;
        assert_eq!(judged(&report(0.75), &one_sided), Judgement::NoVerdict);
        assert_eq!(judge(&report(0.75), None).0, Judgement::NoVerdict);
    }
}
