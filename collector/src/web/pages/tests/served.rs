//! What a browser is given.

use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use skewtap_core::ids::SpanId;

use super::cases::{incident, judged, observed};
use super::markup::{assert_well_formed, text_of, values};
use super::site::{Site, healthy};

const INCIDENT: &str = "/exchanges/4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b/0101010101010101";

#[tokio::test]
async fn every_answer_forbids_inline_scripts_and_other_hosts() {
    let site = Site::with(vec![judged(&observed(&incident()))]).await;
    for address in [
        "/",
        "/exchanges",
        INCIDENT,
        "/nowhere",
        "/exchanges?limit=0",
        "/assets/style.css",
    ] {
        let response = site.get(address).await;
        let policy = response.headers()[CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap();
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"));
        assert!(policy.contains("; script-src 'self'; "), "{policy}");
        for allowed in ["unsafe", "http", "*", "data:", "nonce", "blob:"] {
            assert!(!policy.contains(allowed), "{policy}");
        }
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert_eq!(response.headers()["referrer-policy"], "no-referrer");
    }
}

#[tokio::test]
async fn the_list_leads_to_the_exchange_and_on_to_its_json() {
    let site = Site::with(vec![judged(&observed(&incident()))]).await;
    let (status, list) = site.page("/exchanges").await;
    assert_eq!(status, StatusCode::OK);
    assert_well_formed(&list);
    assert!(values(&list, "href").contains(&INCIDENT.to_owned()));
    let text = text_of(&list);
    for shown in [
        "1 flagged",
        "shop-client",
        "8.021",
        "7.510",
        "0.511",
        "Client, response unread",
        "client_blind_sleep",
        "observed",
    ] {
        assert!(text.contains(shown), "{shown} is not in {text}");
    }
    let (status, page) = site.page(INCIDENT).await;
    assert_eq!(status, StatusCode::OK);
    assert_well_formed(&page);
    let hrefs = values(&page, "href");
    let json = hrefs.iter().find(|href| href.starts_with("/api/")).unwrap();
    let (status, json) = site.page(json).await;
    assert_eq!(status, StatusCode::OK);
    assert!(json.contains("\"client_blind_sleep\""));
}

#[tokio::test]
async fn older_pages_show_every_exchange_once() {
    let site = Site::with(healthy(7)).await;
    let mut address = "/exchanges?service=shop&limit=3".to_owned();
    let mut seen = Vec::new();
    let mut pages = 0;
    loop {
        let (status, html) = site.page(&address).await;
        assert_eq!(status, StatusCode::OK);
        assert_well_formed(&html);
        let hrefs = values(&html, "href");
        let exchanges = hrefs.iter().filter(|href| href.starts_with("/exchanges/"));
        seen.extend(exchanges.cloned());
        pages += 1;
        let older = hrefs.iter().find(|href| href.contains("cursor="));
        let Some(older) = older else { break };
        assert!(older.contains("service=shop"), "{older}");
        address = older.clone();
    }
    assert_eq!(pages, 3);
    let newest_first = (0..7_u8).rev().map(|n| {
        let span = SpanId::from_bytes(&[0x80 | n; 8]).unwrap();
        format!("/exchanges/{}/{span}", "4b".repeat(16))
    });
    assert_eq!(seen, newest_first.collect::<Vec<_>>());
}

#[tokio::test]
async fn the_form_narrows_the_list() {
    let mut verdicts = healthy(3);
    verdicts.push(judged(&observed(&incident())));
    let site = Site::with(verdicts).await;
    let count = async |address: &str| {
        let (status, html) = site.page(address).await;
        assert_eq!(status, StatusCode::OK, "{address}");
        assert_well_formed(&html);
        let hrefs = values(&html, "href");
        hrefs
            .iter()
            .filter(|h| h.starts_with("/exchanges/"))
            .count()
    };
    assert_eq!(count("/exchanges?service=&cause=&since=").await, 4);
    assert_eq!(
        count("/exchanges?flagged=true&service=&cause=&since=").await,
        1
    );
    assert_eq!(
        count("/exchanges?service=shop&cause=client_blind_sleep").await,
        1
    );
    assert_eq!(count("/exchanges?service=other").await, 0);
    // The simulated calls are of 2023.
    assert_eq!(count("/exchanges?since=1h").await, 0);
    assert_eq!(count("/exchanges?since=2023-01-01T00:00:00Z").await, 4);
}

#[tokio::test]
async fn the_form_keeps_what_was_asked_as_text() {
    let site = Site::with(vec![]).await;
    let evil = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    let (status, html) = site
        .page(&format!(
            "/exchanges?flagged=true&service={evil}&cause={evil}&since=30m"
        ))
        .await;
    assert_eq!(status, StatusCode::OK);
    assert_well_formed(&html);
    let plain = "\"><script>alert(1)</script>".to_owned();
    let fields = values(&html, "value");
    assert_eq!(fields.iter().filter(|field| **field == plain).count(), 2);
    assert!(html.contains("value=\"true\" checked"));
    assert!(html.contains("<option value=\"30m\" selected>"));
}

#[tokio::test]
async fn nothing_in_the_list_is_taken_for_markup() {
    let evil = "</title><script>alert('x')</script>\"><img src=x onerror=alert(1)>";
    let mut verdict = judged(&observed(&incident()));
    verdict.path = format!("/{evil}");
    verdict.method = evil.to_owned();
    verdict.client_service = Some(evil.to_owned());
    verdict.server_service = Some(evil.to_owned());
    let site = Site::with(vec![verdict]).await;
    let (_, html) = site.page("/exchanges").await;
    assert_well_formed(&html);
    assert!(!html.contains("<img src=x"));
    assert_eq!(text_of(&html).matches(evil).count(), 4);
}

#[tokio::test]
async fn an_empty_list_says_what_to_do() {
    let site = Site::with(vec![]).await;
    let (_, html) = site.page("/exchanges").await;
    assert_well_formed(&html);
    let text = text_of(&html);
    assert!(text.contains("skewtap proxy --listen"), "{text}");
    let (_, html) = site.page("/exchanges?flagged=true").await;
    assert!(text_of(&html).contains("No exchange fits what you asked for"));
}

#[tokio::test]
async fn a_page_keeps_itself_fresh_when_asked_to() {
    let site = Site::with(vec![]).await;
    let (_, still) = site.page("/exchanges?flagged=true").await;
    assert!(!still.contains("http-equiv"));
    let hrefs = values(&still, "href");
    let fresh = hrefs.iter().find(|href| href.contains("refresh=")).unwrap();
    assert!(fresh.contains("flagged=true"));
    let (status, fresh) = site.page(fresh).await;
    assert_eq!(status, StatusCode::OK);
    assert!(fresh.contains("<meta http-equiv=\"refresh\" content=\"5\">"));
    assert!(values(&fresh, "href").contains(&"/exchanges?flagged=true".to_owned()));
}

#[tokio::test]
async fn what_cannot_be_answered_is_said_on_a_page() {
    let site = Site::with(vec![]).await;
    for (address, status, words) in [
        ("/nowhere", StatusCode::NOT_FOUND, "no page at this address"),
        ("/assets/none.css", StatusCode::NOT_FOUND, "no page"),
        (INCIDENT, StatusCode::NOT_FOUND, "no verdict on span"),
        (
            "/exchanges/xyz/0101010101010101",
            StatusCode::BAD_REQUEST,
            "32 hex digits",
        ),
        (
            "/exchanges?since=yesterday",
            StatusCode::BAD_REQUEST,
            "is no time",
        ),
        (
            "/exchanges?cursor=%3Cb%3E",
            StatusCode::BAD_REQUEST,
            "not a cursor",
        ),
        (
            "/exchanges?colour=%3Cb%3Ered",
            StatusCode::BAD_REQUEST,
            "unknown parameter",
        ),
        (
            "/exchanges?flagged=perhaps",
            StatusCode::BAD_REQUEST,
            "true or false",
        ),
        (
            "/exchanges?limit=1000000",
            StatusCode::BAD_REQUEST,
            "it can be 1 to",
        ),
        (
            "/exchanges?refresh=0",
            StatusCode::BAD_REQUEST,
            "1 to 3600 seconds",
        ),
    ] {
        let (got, html) = site.page(address).await;
        assert_eq!(got, status, "{address}");
        assert_well_formed(&html);
        assert!(!html.contains("<b>"));
        assert!(
            text_of(&html).contains(words),
            "{address}: {}",
            text_of(&html)
        );
    }
}

#[tokio::test]
async fn a_damaged_verdict_spoils_no_other() {
    let mut verdicts = healthy(2);
    verdicts.push(judged(&observed(&incident())));
    let site = Site::with(verdicts).await;
    site.damage("0101010101010101");
    let (status, list) = site.page("/exchanges").await;
    assert_eq!(status, StatusCode::OK);
    assert!(text_of(&list).contains("1 of this page's exchanges are not listed"));
    assert!(text_of(&list).contains("2 on this page"));
    let (status, page) = site.page(INCIDENT).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text_of(&page).contains("the stored verdict cannot be read"));
}

#[tokio::test]
async fn the_style_is_served_as_what_it_is_and_may_be_kept() {
    let site = Site::with(vec![]).await;
    let (_, html) = site.page("/exchanges").await;
    let hrefs = values(&html, "href");
    let style = hrefs
        .iter()
        .find(|href| href.contains("style.css"))
        .unwrap();
    let response = site.get(style).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/css; charset=utf-8");
    assert_eq!(response.headers()[CACHE_CONTROL], "public, max-age=86400");
    assert_eq!(site.get("/").await.headers()[CACHE_CONTROL], "no-store");
    let icon = site.get("/assets/icon.svg").await;
    assert_eq!(icon.headers()[CONTENT_TYPE], "image/svg+xml");
}
