use skewtap_core::verdict_json::VerdictJson;

use super::*;
use crate::run::outcome::cases::verdict;
use crate::run::verdicts::Collected;

fn report(verdicts: Vec<VerdictJson>, not_judged: u64) -> String {
    let outcome = Outcome::new(Collected {
        verdicts,
        left_out: 0,
        not_judged,
    });
    let mut out = Vec::new();
    write(&mut out, &outcome, 1.5).unwrap();
    let text = String::from_utf8(out).unwrap();
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn every_request_has_its_stages_on_one_line() {
    let text = report(vec![verdict(0.4, true)], 0);
    let line = text.lines().find(|line| line.starts_with("GET ")).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    // The stages that are planted in the case.
    let planted = [
        "GET",
        "127.0.0.1:9000/cart",
        "200",
        "721.0",
        "1.0",
        "2.0",
        "-",
        "8.0",
        "300.0",
        "10.0",
        "400.0",
        "client_blind_sleep",
    ];
    assert_eq!(words, planted, "{text}");
    assert!(text.contains("the queue held 1 byte"), "{text}");
    assert!(text.contains("requests: 1, flagged: 1"), "{text}");
}

#[test]
fn a_gap_without_a_cause_names_its_row() {
    let text = report(vec![verdict(0.4, false)], 0);
    assert!(text.contains("unexplained: client_unread"), "{text}");
}

#[test]
fn of_many_requests_the_flagged_and_the_longest_are_shown() {
    let mut verdicts: Vec<_> = std::iter::repeat_with(|| verdict(0.0, false))
        .take(150)
        .collect();
    verdicts[70] = verdict(0.4, true);
    let text = report(verdicts, 3);
    let rows = text.lines().filter(|line| line.starts_with("GET ")).count();
    assert_eq!(rows, 100);
    assert!(text.contains("and 50 more"), "{text}");
    assert!(text.contains("client_blind_sleep (observed)"), "{text}");
    assert!(text.contains("without a verdict: 3"), "{text}");
}

#[test]
fn doubt_is_shown() {
    let ms = |lo: f64, hi: f64| {
        milliseconds(Some(Bounds {
            lo_seconds: lo / 1e3,
            hi_seconds: hi / 1e3,
        }))
    };
    assert_eq!(ms(100.0, 100.4), "100.2");
    assert_eq!(ms(1000.0, 1018.0), "1009.0");
    assert_eq!(ms(100.0, 104.0), "100.0..104.0");
    assert_eq!(ms(-0.2, 3.0), "<3.0");
    assert_eq!(ms(-30.0, -20.0), "-30.0..-20.0");
    assert_eq!(milliseconds(None), "-");
}

#[test]
fn what_a_client_sends_cannot_write_on_the_terminal() {
    let mut verdict = verdict(0.0, false);
    verdict.exchanges_detail[0].path = "/\u{1b}[2J\r\nx".to_owned();
    let text = report(vec![verdict], 0);
    assert!(text.contains("/\u{fffd}[2J\u{fffd}\u{fffd}x"), "{text}");
}
