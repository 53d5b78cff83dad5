//! A verdict whose every stage is known.

use serde_json::json;
use skewtap_core::verdict_json::VerdictJson;

/// A request whose response lay unread for `unread` seconds: flagged if that is above 50 ms, and
/// with a cause if `explained`. Before it 1 ms until the first byte, 8 ms of request, 2 ms of
/// connecting, 300 ms of waiting and 10 ms of response.
pub(in crate::run) fn verdict(unread: f64, explained: bool) -> VerdictJson {
    let flagged = unread > 0.05;
    let (explanation, findings) = match (flagged, explained) {
        (true, true) => ("client_blind_sleep", json!([finding(unread)])),
        (true, false) => ("unexplained", json!([])),
        (false, _) => ("ordinary", json!([])),
    };
    let segment = json!({
        "name": "client_unread", "seconds": unread, "lo_seconds": unread, "hi_seconds": unread,
        "explanation": explanation,
    });
    let quality = json!({
        "sources": null, "missing": ["client_span", "server_span"],
        "client_clock_offset": null, "server_clock_offset": null, "notes": [],
    });
    let document = json!({
        "trace_id": "4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b",
        "client_span_id": "0101010101010101",
        "method": "GET", "path": "/cart", "authority": "127.0.0.1:9000",
        "status": 200, "outcome": "complete", "exchanges": 1,
        "started_unix_nano": "1800000000000000000",
        "wire_seconds": 0.31, "total_seconds": 0.32 + unread, "total_from": "pick-up",
        "segments": [segment], "findings": findings, "faults": [], "flagged": flagged,
        "quality": quality, "bars": [], "exchanges_detail": [exchange(unread)],
    });
    serde_json::from_value(document).unwrap()
}

fn finding(unread: f64) -> serde_json::Value {
    json!({
        "cause": "client_blind_sleep", "segment": "client_unread", "lo_seconds": unread,
        "hi_seconds": unread, "confidence": "observed", "refuted_by": "a thread on a CPU",
        "evidence": [{"kind": "unread_queue", "statement": "the queue held 1 byte"}],
    })
}

fn exchange(unread: f64) -> serde_json::Value {
    let at = |seconds: f64| json!({"lo_seconds": seconds, "hi_seconds": seconds});
    let milestones = json!({
        "down.connected": at(-0.001), "down.request.first": at(0.0),
        "up.connect.start": at(0.003), "up.connected": at(0.005),
        "up.request.last": at(0.010), "up.response.first": at(0.310),
        "down.response.last": at(0.320), "client.picked_up": at(0.320 + unread),
    });
    json!({
        "span_id": "0202020202020202", "method": "GET", "scheme": "http",
        "authority": "127.0.0.1:9000", "path": "/cart", "status": 200, "outcome": "complete",
        "request_bytes": 80, "response_bytes": 120, "client": "127.0.0.1:40000",
        "proxy": "127.0.0.1:8080", "server": "127.0.0.1:9000", "milestones": milestones,
    })
}
