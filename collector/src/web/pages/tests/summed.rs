//! Pages that sum up many exchanges.

use http::StatusCode;
use skewtap_core::ids::SpanId;
use skewtap_core::verdict::Verdict;
use skewtap_simulator::scenario::{Meanwhile, Scenario};

use super::cases::{MS, incident, judged, observed};
use super::markup::{assert_well_formed, text_of, values};
use super::site::{ADDRESSES, Site, healthy};

/// The simulated calls are of 2023.
const SINCE: &str = "since=2023-01-01T00:00:00Z";

/// A second apart, each to a server that takes a quarter of a second longer, by a client that is
/// blind every other second.
fn blind_client(count: u8) -> Vec<Verdict> {
    (1..=count)
        .map(|n| {
            let server_ns = i64::from(n) * 250 * MS;
            let at = server_ns % (2_000 * MS);
            let lag_ns = (2_000 * MS - at) % (2_000 * MS);
            let scenario = if (1..=1_000 * MS).contains(&lag_ns) {
                Scenario {
                    unread_ns: lag_ns,
                    meanwhile: Meanwhile::SleepsBlind,
                    ..Scenario::healthy(server_ns)
                }
            } else {
                Scenario::healthy(server_ns)
            };
            let mut verdict = judged(&observed(&scenario));
            verdict.client_span_id = SpanId::from_bytes(&[0x40 | n; 8]).unwrap();
            let started = verdict.started_ns.as_mut().unwrap();
            *started += i64::from(n) * 1_000 * MS;
            verdict.client_service = Some("blind".to_owned());
            verdict
        })
        .collect()
}

#[tokio::test]
async fn the_overview_counts_every_exchange_once() {
    let mut verdicts = healthy(7);
    verdicts.push(judged(&observed(&incident())));
    verdicts.extend(blind_client(33));
    let site = Site::with(verdicts).await;
    let (status, html) = site.page(&format!("/?{SINCE}")).await;
    assert_eq!(status, StatusCode::OK);
    assert_well_formed(&html);
    let text = text_of(&html);
    // Of each eight calls of the blind client four lie in its blind second, its end included.
    for words in [
        "17 of 41 exchanges flagged, on 2 of 2 edges",
        "blind →to shop",
        "shop-client →to shop",
        "client_blind_sleep",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let bars = values(&html, "data-values");
    let flagged: u64 = bars.iter().map(|bar| bar.parse::<u64>().unwrap()).sum();
    assert_eq!(flagged, 17);
    let hrefs = values(&html, "href");
    let latest = hrefs.iter().filter(|href| href.starts_with("/exchanges/"));
    assert_eq!(latest.count(), 10);
}

#[tokio::test]
async fn the_overview_of_a_time_without_exchanges_says_so() {
    let site = Site::with(healthy(1)).await;
    let (_, html) = site.page("/").await;
    assert_well_formed(&html);
    assert!(text_of(&html).contains("0 exchanges, nothing flagged"));
    assert!(text_of(&html).contains("No exchange began in this time"));
}

#[tokio::test]
async fn an_empty_store_says_how_to_begin_with_the_addresses_that_are_bound() {
    let site = Site::with(vec![]).await;
    let (_, clocks) = site.page("/clocks").await;
    assert_well_formed(&clocks);
    assert!(text_of(&clocks).contains("No clock is known yet"));
    for address in ["/", "/exchanges"] {
        let (_, html) = site.page(address).await;
        assert_well_formed(&html);
        let text = text_of(&html);
        assert!(text.contains(&format!("--otlp http://{}", ADDRESSES.otlp_grpc)));
        assert!(text.contains(&format!("http://{}", ADDRESSES.otlp_http)));
    }
}

#[tokio::test]
async fn the_page_of_an_edge_names_the_rhythm_of_its_client() {
    let mut verdicts = healthy(7);
    verdicts.extend(blind_client(33));
    let site = Site::with(verdicts).await;
    let (_, overview) = site.page(&format!("/?{SINCE}")).await;
    let hrefs = values(&overview, "href");
    let edge = |service: &str| {
        let mut edges = hrefs.iter().filter(|href| href.starts_with("/edge?"));
        let found = edges.find(|href| href.contains(&format!("client_service={service}&")));
        found.unwrap().clone()
    };
    let (status, html) = site.page(&edge("blind")).await;
    assert_eq!(status, StatusCode::OK);
    assert_well_formed(&html);
    let text = text_of(&html);
    for words in [
        "for 1.000 s, then does not for 1.000 s",
        "a period of 2.000 s",
        "Exchanges33",
        "Flagged16",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert_eq!(values(&html, "data-period"), ["2.000000000"]);
    let kinds = values(&html, "data-kind");
    // Each exchange is a point of two charts.
    assert_eq!(kinds.iter().filter(|kind| *kind == "flagged").count(), 32);

    let (_, html) = site.page(&edge("shop-client")).await;
    assert!(text_of(&html).contains("No lag above 0.020 s"));
    assert!(values(&html, "data-period").is_empty());

    let list = values(&html, "href");
    let list = list
        .iter()
        .find(|href| href.starts_with("/exchanges?"))
        .unwrap();
    let (status, html) = site.page(list).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    assert!(text_of(&html).contains("7 on this page"));
}

#[tokio::test]
async fn an_edge_that_nothing_was_seen_on_says_so() {
    let site = Site::with(healthy(1)).await;
    let evil = "%3Cscript%3Ealert(1)%3C/script%3E";
    let address = format!("/edge?client_service={evil}&server_service=&route={evil}");
    let (status, html) = site.page(&address).await;
    assert_eq!(status, StatusCode::OK);
    assert_well_formed(&html);
    let text = text_of(&html);
    assert!(text.contains("<script>alert(1)</script> →to unknown server"));
    assert!(text.contains("Nothing in this time"));
}

#[tokio::test]
async fn the_page_on_health_tells_sources_costs_and_trouble() {
    let site = Site::with(healthy(3)).await;
    let (status, html) = site.page("/health").await;
    assert_eq!(status, StatusCode::OK);
    assert_well_formed(&html);
    let text = text_of(&html);
    for words in [
        "The store can be written",
        "127.0.0.1:24317",
        "The latest 3 exchanges",
        "Packet capture",
        "3 of 3",
        "Proxy, passing the request on",
        "skewtap_unjoinable_spans",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[tokio::test]
async fn parameters_that_a_page_does_not_have_are_refused() {
    let site = Site::with(vec![]).await;
    for address in [
        "/?colour=red",
        "/edge?colour=red",
        "/edge?route=a&route=b",
        "/?since=1h&since=2h",
        "/?since=yesterday",
    ] {
        let (status, html) = site.page(address).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{address}");
        assert_well_formed(&html);
    }
}
