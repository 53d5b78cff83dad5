use skewtap_core::ids::{SpanId, TraceId};

use super::*;

const MS: i64 = 1_000_000;

fn point(n: u8, wire_ns: Option<i64>, lag_ns: Option<i64>) -> Point {
    Point {
        trace_id: TraceId::from_bytes(&[7; 16]).unwrap(),
        client_span_id: SpanId::from_bytes(&[n + 1; 8]).unwrap(),
        started_ns: i64::from(n) * 1_000 * MS,
        server_ns: None,
        wire_ns,
        lag_ns,
        gap_ns: lag_ns,
        flagged: lag_ns.is_some_and(|lag| lag > 50 * MS),
    }
}

/// Every quarter of a second a response, to a client that is blind every other second.
fn blind(count: u8) -> Vec<Point> {
    (0..count)
        .map(|n| {
            let wire_ns = (i64::from(n) + 1) * 250 * MS;
            let at = wire_ns % (2_000 * MS);
            let lag_ns = if at < 1_000 * MS { 0 } else { 2_000 * MS - at };
            point(n, Some(wire_ns + MS), Some(lag_ns + MS))
        })
        .collect()
}

#[test]
fn a_blind_sleep_is_named_with_its_period_and_drawn() {
    let points = blind(33);
    let rhythm = rhythm(&points);
    assert!(
        rhythm
            .words
            .contains("for 1.000 s, then does not for 1.000 s"),
        "{}",
        rhythm.words
    );
    assert!(rhythm.words.contains("a period of 2.000 s"));
    let chart = chart(&points, &rhythm);
    let beat = chart.beat.unwrap();
    assert_eq!(beat.period, "2.000000000");
    assert_eq!(beat.looking, "1.000000000");
    assert_eq!(chart.rows.len(), 33);
    assert_eq!(chart.rows[0].data[0], ("x", "0.251000000".to_owned()));
    assert_eq!(chart.rows[4].data[2], ("kind", "flagged".to_owned()));
}

#[test]
fn few_lags_or_none_are_said_to_be_too_few() {
    let few = rhythm(&blind(8));
    assert_eq!(few.found, None);
    assert!(few.words.contains("It takes 8"), "{}", few.words);
    let none: Vec<_> = (0..20).map(|n| point(n, Some(MS), Some(MS))).collect();
    assert!(rhythm(&none).words.starts_with("No lag above"));
    assert!(rhythm(&[]).words.starts_with("No lag above"));
}

#[test]
fn an_exchange_that_was_not_seen_read_is_not_drawn() {
    let points = [point(0, Some(MS), None), point(1, None, Some(MS))];
    assert!(chart(&points, &rhythm(&points)).rows.is_empty());
}
