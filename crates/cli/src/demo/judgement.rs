//! Holds a verdict against what the client itself knows.

use serde::Serialize;

use super::client_report::{ClientReport, Truth};
use super::verdict_document::VerdictDocument;

/// The cause that is planted.
const CAUSE: &str = "client_blind_sleep";
/// Where it must be found: after the response had arrived.
const SEGMENTS: [&str; 2] = ["client_unread", "client_after_arrival"];
/// How far the bounds found may be from what the client measured, in seconds.
const TOLERANCE: f64 = 0.01;

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
    /// Late for a reason that nobody planted: whether to flag it is not the demo's to say.
    Disturbed,
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
    match (report.truth(), verdict.fields.flagged) {
        (Truth::Healthy, false) => (Judgement::Quiet, None),
        (Truth::Healthy, true) => (Judgement::FalseAlarm, Some("flagged".to_owned())),
        (Truth::Disturbed, _) => (Judgement::Disturbed, Some(disturbance(report))),
        (Truth::Planted, false) => (Judgement::Missed, Some("not flagged".to_owned())),
        (Truth::Planted, true) => match shortcoming(report, verdict) {
            None => (Judgement::Found, None),
            Some(why) => (Judgement::Missed, Some(why)),
        },
    }
}

fn disturbance(report: &ClientReport) -> String {
    format!(
        "the client itself measured {:.3} s before it sent and {:.3} s before it read: is this \
         machine too busy?",
        report.before_send_seconds, report.unread_seconds
    )
}

/// What a flagged verdict on a planted gap lacks.
fn shortcoming(report: &ClientReport, verdict: &VerdictDocument) -> Option<String> {
    let findings = &verdict.fields.findings;
    let Some(finding) = findings.iter().find(|finding| finding.cause == CAUSE) else {
        return Some(format!("flagged without the cause {CAUSE}"));
    };
    if !SEGMENTS.contains(&finding.segment.as_ref()) {
        return Some(format!("found in the segment {}", finding.segment));
    }
    let (lo, hi) = (
        finding.lo_seconds - TOLERANCE,
        finding.hi_seconds + TOLERANCE,
    );
    (!(lo..=hi).contains(&report.unread_seconds)).then(|| {
        format!(
            "found as {:.3} to {:.3} s, while the response lay unread for {:.3} s",
            finding.lo_seconds, finding.hi_seconds, report.unread_seconds
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Behaviour;
    use serde_json::json;

    fn report(unread_seconds: f64) -> ClientReport {
        ClientReport {
            behaviour: Behaviour::BlindSleep,
            delay_seconds: 1.25,
            trace_id: "aa".to_owned(),
            span_id: "bb".to_owned(),
            status: 200,
            client_seconds: 1.25 + unread_seconds,
            server_seconds: 1.25,
            before_send_seconds: 0.001,
            unread_seconds,
            blind_sleeps: 1,
            slept_over_response: unread_seconds > 0.5,
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
            verdict(true, CAUSE, "client_unread", 0.73),
            verdict(true, CAUSE, "client_unread", 0.77),
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
    fn what_was_late_by_itself_is_neither_planted_nor_healthy() {
        let flagged = verdict(true, CAUSE, "client_unread", 0.06);
        let quiet = verdict(false, CAUSE, "client_unread", 0.06);
        let woken_late = report(0.06);
        let sent_late = ClientReport {
            before_send_seconds: 0.06,
            ..report(0.001)
        };
        for late in [&woken_late, &sent_late] {
            assert_eq!(judged(late, &flagged), Judgement::Disturbed);
            assert_eq!(judged(late, &quiet), Judgement::Disturbed);
        }
    }

    #[test]
    fn one_side_is_not_enough() {
        let mut one_sided = verdict(true, CAUSE, "client_unread", 0.75);
        one_sided.fields.client_seconds = None;
        assert_eq!(judged(&report(0.75), &one_sided), Judgement::NoVerdict);
        assert_eq!(judge(&report(0.75), None).0, Judgement::NoVerdict);
    }
}
