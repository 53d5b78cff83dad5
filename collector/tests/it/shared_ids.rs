//! Servers that report under their client's own span id, as Zipkin's B3 propagation has it.

use skewtap_collector::matcher::{Match, MatchKind, Matcher, MatcherLimits};
use skewtap_collector::observation::Observation;
use skewtap_core::audit::Observed;
use skewtap_core::ids::SpanId;
use skewtap_core::reported_span::ReportedSpan;

use super::matching::{observations, only};
use super::samples;

const S: i64 = 1_000_000_000;

fn span_id(n: u8) -> SpanId {
    SpanId::from_bytes(&[n; 8]).unwrap()
}

fn offer(matcher: &mut Matcher, span: &ReportedSpan) {
    matcher.offer(Observation::Span(Box::new(span.clone())), 1, 0);
}

fn due(matcher: &mut Matcher, now_ns: i64) -> Vec<Match> {
    matcher.take_due(now_ns, |_| None)
}

/// Call number 1, whose server shares the id and the parent of the client's span.
fn shared(parent: Option<SpanId>) -> Observed {
    let mut call = samples::healthy(1);
    let client = call.client.as_mut().unwrap();
    client.parent_span_id = parent;
    call.servers[0].span_id = client.span_id;
    call.servers[0].parent_span_id = parent;
    call
}

#[test]
fn a_server_with_its_clients_id_answers_it_whatever_comes_first() {
    for parent in [None, Some(span_id(7))] {
        let call = shared(parent);
        let parts = observations(&call);
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let mut matcher = Matcher::new(MatcherLimits::default());
            for part in order {
                matcher.offer(parts[part].clone(), 1, 0);
            }
            let found = only(due(&mut matcher, S));
            assert_eq!(found.kind, MatchKind::Complete, "{order:?}");
            assert_eq!(found.observed.client, call.client);
            assert_eq!(found.observed.servers, call.servers);
            assert_eq!(matcher.open(), 1, "nothing is left elsewhere");
        }
    }
}

/// A server that was asked asks in turn. Its own request has its span as parent, and so has the
/// span of the one it asks, which must not be taken for an answer to the first request.
#[test]
fn what_a_server_asks_for_in_turn_is_no_answer_to_its_client() {
    let call = shared(None);
    let outer = call.client.clone().unwrap();
    let mut inner_client = outer.clone();
    inner_client.span_id = span_id(50);
    inner_client.parent_span_id = Some(outer.span_id);
    let mut inner_server = call.servers[0].clone();
    inner_server.span_id = inner_client.span_id;
    inner_server.parent_span_id = Some(outer.span_id);
    inner_server.service = "innermost".to_owned();
    for inner_first in [false, true] {
        let mut matcher = Matcher::new(MatcherLimits::default());
        let mut spans = vec![inner_client.clone(), inner_server.clone()];
        if inner_first {
            spans.reverse();
        }
        for span in &spans {
            offer(&mut matcher, span);
        }
        for part in observations(&call) {
            matcher.offer(part, 1, 0);
        }
        let first = only(due(&mut matcher, S));
        assert_eq!(first.key.span_id, outer.span_id);
        assert_eq!(first.observed.servers, call.servers);
        let second = only(due(&mut matcher, 15 * S));
        assert_eq!(second.kind, MatchKind::NoExchange);
        assert_eq!(second.observed.client, Some(inner_client.clone()));
        assert_eq!(second.observed.servers, [inner_server.clone()]);
    }
}

/// Whoever asks from within a server's span, without a span of the request, names that span. It
/// is then not the server of its own request.
#[test]
fn a_server_is_not_taken_for_the_answer_to_what_it_asked_itself() {
    let mut call = samples::healthy(1);
    let mut asking = call.servers[0].clone();
    asking.span_id = call.client.take().unwrap().span_id;
    asking.parent_span_id = None;
    asking.service = "asking".to_owned();
    let mut matcher = Matcher::new(MatcherLimits::default());
    offer(&mut matcher, &asking);
    matcher.offer(observations(&call)[0].clone(), 1, 0);
    let found = only(due(&mut matcher, 15 * S));
    assert_eq!(found.kind, MatchKind::ExchangeOnly);
    assert!(found.observed.servers.is_empty());
    assert_eq!(found.others, [asking]);
}

#[test]
fn a_root_span_of_a_server_is_let_go_when_no_client_has_its_id() {
    let mut root = samples::healthy(1).servers.remove(0);
    root.parent_span_id = None;
    let mut matcher = Matcher::new(MatcherLimits::default());
    offer(&mut matcher, &root);
    assert!(due(&mut matcher, 14 * S).is_empty());
    assert_eq!(matcher.open(), 1);
    assert!(due(&mut matcher, 15 * S).is_empty());
    assert_eq!((matcher.open(), matcher.counts().unmatched), (0, 1));
}
