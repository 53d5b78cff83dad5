use super::*;

const GATHER: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_secs(300);

fn notice(n: u64, cause: &str, route: &str, lost_ns: i64) -> Notice {
    let mut trace_id = [1; 16];
    trace_id[8..].copy_from_slice(&n.to_be_bytes());
    Notice {
        trace_id: TraceId::from_bytes(&trace_id).unwrap(),
        client_span_id: SpanId::from_bytes(&[1; 8]).unwrap(),
        key: GroupKey {
            client_service: "till".to_owned(),
            server_service: "shop".to_owned(),
            route: route.to_owned(),
            cause: cause.to_owned(),
        },
        segment: "client_unread",
        confidence: Some("observed"),
        lost_ns,
        method: "GET".to_owned(),
        path: "/cart".to_owned(),
        client_ns: None,
        server_ns: None,
        page: "http://127.0.0.1:4390/".to_owned(),
    }
}

/// How often each group is told of, by cause and route, with the number it stands for.
fn told(groups: &mut Groups, now: Instant) -> Vec<(String, String, u64, i64)> {
    let mut told = Vec::new();
    while let Some(message) = groups.take_due(now) {
        let GroupKey { cause, route, .. } = message.group;
        told.push((cause, route, message.count, message.worst.lost_ns));
    }
    told.sort();
    told
}

#[test]
fn a_burst_is_one_message_for_each_edge_and_cause() {
    let mut groups = Groups::new(GATHER, EVERY);
    let start = Instant::now();
    for n in 0..10 {
        groups.add(
            notice(n, "sleep", "/cart", 100 + i64::try_from(n).unwrap()),
            start,
        );
    }
    groups.add(notice(10, "sleep", "/pay", 7), start);
    groups.add(notice(11, "lock", "/cart", 8), start);
    assert_eq!(groups.next_due(), Some(start + GATHER));
    assert_eq!(told(&mut groups, start), []);
    let expected = [
        ("lock", "/cart", 1, 8),
        ("sleep", "/cart", 10, 109),
        ("sleep", "/pay", 1, 7),
    ];
    let expected = expected.map(|(c, r, n, ns)| (c.to_owned(), r.to_owned(), n, ns));
    assert_eq!(told(&mut groups, start + GATHER), expected);
    assert_eq!(groups.next_due(), None);
}

#[test]
fn a_group_is_told_of_again_only_after_a_while_and_with_all_that_came() {
    let mut groups = Groups::new(GATHER, EVERY);
    let start = Instant::now();
    groups.add(notice(1, "sleep", "/cart", 1), start);
    let first = start + GATHER;
    assert_eq!(told(&mut groups, first).len(), 1);
    for n in 2..6 {
        groups.add(
            notice(n, "sleep", "/cart", 1),
            first + Duration::from_secs(n),
        );
    }
    assert_eq!(groups.next_due(), Some(first + EVERY));
    assert_eq!(told(&mut groups, first + EVERY - GATHER), []);
    let second = told(&mut groups, first + EVERY);
    assert_eq!(second, [("sleep".to_owned(), "/cart".to_owned(), 4, 1)]);
}

#[test]
fn a_revision_of_a_verdict_is_not_news() {
    let mut groups = Groups::new(GATHER, EVERY);
    let start = Instant::now();
    groups.add(notice(1, "sleep", "/cart", 1), start);
    groups.add(notice(1, "sleep", "/cart", 2), start);
    let message = groups.take_due(start + GATHER).unwrap();
    assert_eq!(message.count, 1);
}

#[test]
fn groups_beyond_the_cap_are_told_of_together() {
    let mut groups = Groups::new(GATHER, EVERY);
    let start = Instant::now();
    let many = u64::try_from(MOST_GROUPS).unwrap() + 50;
    for n in 0..many {
        groups.add(notice(n, "sleep", &format!("/{n}"), 1), start);
    }
    let told = told(&mut groups, start + GATHER);
    assert_eq!(told.len(), MOST_GROUPS + 1);
    assert_eq!(told.iter().map(|(_, _, count, _)| count).sum::<u64>(), many);
    assert!(
        told.iter()
            .any(|(cause, _, count, _)| cause == OTHER && *count == 50)
    );
    // Later there is room again: what was told of long ago is forgotten.
    let later = start + GATHER + EVERY;
    groups.add(notice(many, "sleep", "/new", 1), later);
    let message = groups.take_due(later + GATHER).unwrap();
    assert_eq!(message.group.route, "/new");
}
