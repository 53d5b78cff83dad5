//! The JSON form keeps its promises to those who read it.

use skewtap_core::audit::{KnownClocks, audit};
use skewtap_core::policy::Policy;
use skewtap_core::verdict_json::VerdictJson;
use skewtap_simulator::scenario::{Meanwhile, Scenario};
use skewtap_simulator::world::World;

fn incident() -> Scenario {
    Scenario {
        unread_ns: 510_000_000,
        meanwhile: Meanwhile::SleepsBlind,
        ..Scenario::healthy(7_510_000_000)
    }
}

fn json_of(scenario: &Scenario, client_span: bool) -> serde_json::Value {
    let mut observed = scenario.observe(&World::PLAIN);
    observed.client = observed.client.filter(|_| client_span);
    let verdict = audit(&observed, &KnownClocks::default(), &Policy::default()).unwrap();
    serde_json::to_value(VerdictJson::from(&verdict)).unwrap()
}

#[test]
fn the_promised_fields_are_there() {
    let json = json_of(&incident(), true);
    assert_eq!(json["trace_id"], "4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b");
    assert_eq!(json["client_span_id"], "0101010101010101");
    assert_eq!(json["method"], "GET");
    assert_eq!(json["path"], "/cart");
    assert_eq!(json["status"], 200);
    assert_eq!(json["client_seconds"], 8.02098);
    assert_eq!(json["server_seconds"], 7.51);
    assert_eq!(json["gap_seconds"], 0.51098);
    assert_eq!(json["flagged"], true);
    assert_eq!(json["findings"][0]["cause"], "client_blind_sleep");
    assert_eq!(json["findings"][0]["confidence"], "observed");
    assert!(json["findings"][0]["evidence"][0]["statement"].is_string());
    assert!(json["wire_seconds"].is_number());
    assert!(json["unexplained_seconds"].is_number());
    assert!(json["quality"]["missing"].as_array().unwrap().is_empty());
    for segment in json["segments"].as_array().unwrap() {
        assert!(
            segment["lo_seconds"].as_f64() <= segment["hi_seconds"].as_f64(),
            "{segment}"
        );
    }
}

#[test]
fn each_exchange_has_its_instants() {
    let scenario = incident();
    let json = json_of(&scenario, true);
    let [exchange] = json["exchanges_detail"].as_array().unwrap().as_slice() else {
        panic!("{json:#}")
    };
    assert_eq!(exchange["path"], "/cart");
    assert_eq!(exchange["status"], 200);
    let at = |name: &str| {
        let bounds = &exchange["milestones"][name];
        let bound = |which: &str| bounds[which].as_f64().unwrap_or_else(|| panic!("{name}"));
        (bound("lo_seconds"), bound("hi_seconds"))
    };
    assert_eq!(at("down.request.first").0, 0.0);
    let (response, read) = (at("down.response.last"), at("client.picked_up"));
    assert!(read.0 - response.1 <= 0.51 && 0.51 <= read.1 - response.0);
}

#[test]
fn a_document_without_instants_is_still_read() {
    let mut json = json_of(&incident(), true);
    json.as_object_mut().unwrap().remove("exchanges_detail");
    let read: VerdictJson = serde_json::from_value(json).unwrap();
    assert!(read.exchanges_detail.is_empty());
}

#[test]
fn what_is_unknown_is_null() {
    let json = json_of(&incident(), false);
    assert!(json["client_seconds"].is_null());
    assert!(json["gap_seconds"].is_null());
    assert!(json["client_bounds"]["lo_seconds"].is_number());
    assert_eq!(json["total_from"], "pick-up");
    assert_eq!(json["quality"]["missing"][0], "client_span");
}

#[test]
fn a_reader_gets_back_what_was_written() {
    let json = json_of(&incident(), true);
    let read: VerdictJson = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), json);
}
