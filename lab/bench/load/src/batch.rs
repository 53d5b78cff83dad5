//! A request full of spans that can be sent again and again, each time with ids of its own.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::protobuf::{bytes, fields, fixed, integer};

/// Length of a gRPC message's own head: whether it is compressed, and its length.
const GRPC_HEAD: usize = 5;

/// Values of a span's kind.
const SERVER: u64 = 2;
const CLIENT: u64 = 3;

/// A request, and where in it the ids are.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    body: Vec<u8>,
    spans: u64,
    ids: Vec<Id>,
}

/// A place that holds the id number `which` of this batch; a trace id takes two of 8 bytes.
#[derive(Clone, Debug)]
struct Id {
    place: Range<usize>,
    which: u64,
}

impl Batch {
    /// Client spans of one service and the server spans under them of another, `pairs` each.
    pub(crate) fn of_pairs(pairs: usize) -> Self {
        Self::of(Self::bodies(pairs).concat())
    }

    /// The same as two requests: the client spans, and the server spans under them.
    pub(crate) fn sides(pairs: usize) -> [Self; 2] {
        let bodies = Self::bodies(pairs);
        let whole = Self::of(bodies.concat());
        let mut from = 0;
        bodies.map(|body| {
            let within = from..from + body.len();
            let ids = whole.ids.iter();
            let ids = ids.filter(|id| within.contains(&id.place.start));
            let ids = ids.map(|id| Id {
                place: id.place.start - from..id.place.end - from,
                which: id.which,
            });
            let ids = ids.collect();
            from = within.end;
            Self {
                body,
                spans: whole.spans / 2,
                ids,
            }
        })
    }

    fn bodies(pairs: usize) -> [Vec<u8>; 2] {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ns = now.map_or(0, |since| since.as_nanos());
        let now_ns = u64::try_from(now_ns).unwrap_or_default();
        [CLIENT, SERVER].map(|kind| {
            let mut body = Vec::new();
            let mut spans = Vec::new();
            for pair in 0..pairs as u64 {
                bytes(&mut spans, 2, &span(kind, pair, now_ns));
            }
            let mut scope = Vec::new();
            bytes(&mut scope, 1, b"bench-http-instrumentation");
            bytes(&mut scope, 2, b"1.2.3");
            let mut scope_spans = Vec::new();
            bytes(&mut scope_spans, 1, &scope);
            scope_spans.extend(spans);
            let mut resource_spans = Vec::new();
            bytes(&mut resource_spans, 1, &resource(kind));
            bytes(&mut resource_spans, 2, &scope_spans);
            bytes(&mut body, 1, &resource_spans);
            body
        })
    }

    /// A request that was received; `None` if it holds no spans.
    pub(crate) fn recorded(body: Vec<u8>) -> Option<Self> {
        Some(Self::of(body)).filter(|batch| batch.spans > 0)
    }

    fn of(body: Vec<u8>) -> Self {
        let mut places = Vec::new();
        let mut spans = 0;
        for_each_span(&body, |span| {
            spans += 1;
            fields(&body, span, |number, place| match number {
                1 => places.extend([place.start..place.start + 8, place.start + 8..place.end]),
                2 | 4 => places.push(place),
                _ => {}
            });
        });
        let mut known = HashMap::new();
        let ids = places
            .into_iter()
            .filter(|place| place.len() == 8)
            .map(|place| {
                let next = known.len() as u64;
                let value = body.get(place.clone()).unwrap_or_default();
                let which = *known.entry(value).or_insert(next);
                Id { place, which }
            })
            .collect();
        Self { body, spans, ids }
    }

    /// Spans in it.
    pub(crate) fn spans(&self) -> u64 {
        self.spans
    }

    /// A gRPC message with ids that no other `number` gives.
    pub(crate) fn message(&self, number: u64) -> Bytes {
        let mut message = BytesMut::with_capacity(GRPC_HEAD + self.body.len());
        message.put_u8(0);
        message.put_u32(u32::try_from(self.body.len()).unwrap_or(u32::MAX));
        message.extend_from_slice(&self.body);
        if let Some(body) = message.get_mut(GRPC_HEAD..) {
            for id in &self.ids {
                if let Some(place) = body.get_mut(id.place.clone()) {
                    place.copy_from_slice(&scattered(number << 20 | id.which).to_be_bytes());
                }
            }
        }
        message.freeze()
    }
}

fn for_each_span(body: &[u8], mut found: impl FnMut(Range<usize>)) {
    fields(body, 0..body.len(), |number, resource_spans| {
        if number == 1 {
            fields(body, resource_spans, |number, scope_spans| {
                if number == 2 {
                    fields(body, scope_spans, |number, span| {
                        if number == 2 {
                            found(span);
                        }
                    });
                }
            });
        }
    });
}

/// Spreads numbers over all ids, as random ones are, so that no index profits from their order.
/// Different numbers give different ids, and none gives zero but zero itself.
fn scattered(number: u64) -> u64 {
    let mut id = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    id = (id ^ id >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    id = (id ^ id >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    id ^ id >> 31
}

fn span(kind: u64, pair: u64, now_ns: u64) -> Vec<u8> {
    let client_id = (pair * 4 + 1).to_be_bytes();
    let server_id = (pair * 4 + 2).to_be_bytes();
    let mut trace_id = (pair * 4 + 3).to_be_bytes().to_vec();
    trace_id.extend((pair * 4 + 4).to_be_bytes());
    let (own, start, end, port_key) = match kind {
        CLIENT => (client_id, 0, 12_000_000, "server.port"),
        _ => (server_id, 1_000_000, 11_000_000, "client.port"),
    };
    let mut span = Vec::new();
    bytes(&mut span, 1, &trace_id);
    bytes(&mut span, 2, &own);
    if kind == SERVER {
        bytes(&mut span, 4, &client_id);
    }
    bytes(&mut span, 5, b"GET /api/items/{id}");
    integer(&mut span, 6, kind);
    fixed(&mut span, 7, now_ns + start);
    fixed(&mut span, 8, now_ns + end);
    for (key, value) in [
        ("http.request.method", text("GET")),
        ("url.path", text("/api/items/4711")),
        ("server.address", text("127.0.0.1")),
        (port_key, whole(8080)),
        ("http.response.status_code", whole(200)),
    ] {
        bytes(&mut span, 9, &attribute(key, &value));
    }
    span
}

fn resource(kind: u64) -> Vec<u8> {
    let service = if kind == CLIENT { "shop" } else { "stock" };
    let mut resource = Vec::new();
    for (key, value) in [
        ("service.name", service),
        (
            "service.instance.id",
            "0b6e6a9c-0a3f-4f6e-9a55-0d1c2b3a4f5e",
        ),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.name", "opentelemetry"),
    ] {
        bytes(&mut resource, 1, &attribute(key, &text(value)));
    }
    resource
}

fn attribute(key: &str, value: &[u8]) -> Vec<u8> {
    let mut attribute = Vec::new();
    bytes(&mut attribute, 1, key.as_bytes());
    bytes(&mut attribute, 2, value);
    attribute
}

fn text(value: &str) -> Vec<u8> {
    let mut any = Vec::new();
    bytes(&mut any, 1, value.as_bytes());
    any
}

fn whole(value: u64) -> Vec<u8> {
    let mut any = Vec::new();
    integer(&mut any, 3, value);
    any
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Trace id, own id and parent id of each span of a message.
    fn ids(message: &[u8]) -> Vec<[Vec<u8>; 3]> {
        let body = &message[GRPC_HEAD..];
        let mut all = Vec::new();
        for_each_span(body, |span| {
            let mut ids = [const { Vec::new() }; 3];
            fields(body, span, |number, place| match number {
                1 => ids[0] = body[place].to_vec(),
                2 => ids[1] = body[place].to_vec(),
                4 => ids[2] = body[place].to_vec(),
                _ => {}
            });
            all.push(ids);
        });
        all
    }

    #[test]
    fn a_server_span_stays_under_its_client_span() {
        let message = Batch::of_pairs(3).message(7);
        let ids = ids(&message);
        assert_eq!(ids.len(), 6);
        for pair in 0..3 {
            let (client, server) = (&ids[pair], &ids[pair + 3]);
            assert_eq!(client[0], server[0], "one trace");
            assert_eq!(client[1], server[2], "the server's parent is the client");
            assert!(client[2].is_empty(), "the client has no parent");
            assert_ne!(client[1], server[1]);
        }
    }

    #[test]
    fn two_sides_have_the_ids_of_the_whole() {
        let whole = ids(&Batch::of_pairs(3).message(7));
        let [clients, servers] = Batch::sides(3);
        assert_eq!((clients.spans(), servers.spans()), (3, 3));
        let apart = [ids(&clients.message(7)), ids(&servers.message(7))];
        assert_eq!(apart.concat(), whole);
    }

    #[test]
    fn no_id_comes_twice() {
        let batch = Batch::of_pairs(256);
        let mut spans = HashSet::new();
        for number in 0..50 {
            for [trace, own, _] in ids(&batch.message(number)) {
                assert_eq!((trace.len(), own.len()), (16, 8));
                assert!(spans.insert(own));
            }
        }
        assert_eq!(spans.len(), 50 * 512);
    }

    #[test]
    fn a_recorded_request_keeps_everything_but_its_ids() {
        let first = Batch::of_pairs(2);
        let again = Batch::recorded(first.body.clone()).expect("it holds spans");
        assert_eq!(again.spans(), 4);
        assert_eq!(again.message(3), first.message(3));
        assert!(Batch::recorded(b"\x0a\x00".to_vec()).is_none());
    }
}
