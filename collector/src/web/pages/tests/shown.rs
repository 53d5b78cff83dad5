//! What a page says.

use askama::Template;
use skewtap_core::verdict_json::VerdictJson;
use skewtap_simulator::scenario::Scenario;

use super::cases::{
    MS, incident, json, json_of, observed, retried, spans_alone, without_client_span,
    without_server_span,
};
use super::markup::{assert_well_formed, text_of};
use crate::web::pages::exchange::ExchangePage;
use crate::web::pages::format::Digits;
use crate::web::pages::{headline, ledger_table};

fn page(verdict: &VerdictJson) -> String {
    ExchangePage::of(verdict.clone()).render().unwrap()
}

fn sentence(verdict: &VerdictJson) -> String {
    let said = headline::of(verdict);
    format!("{}: {}; {}", said.figures, said.place, said.cause)
}

/// The bounds in "… 0.509 to 0.512 s after …", in seconds.
fn bounds_in(text: &str) -> (f64, f64) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let to = words.iter().position(|word| *word == "to").unwrap();
    let number = |at: usize| words[at].parse().unwrap();
    (number(to - 1), number(to + 1))
}

fn nanoseconds(digits: &Digits) -> i64 {
    let text = format!("{}{}{}", digits.milli, digits.micro, digits.nano);
    text.replace('\u{2212}', "-")
        .replace('.', "")
        .parse()
        .unwrap()
}

/// Every kind of call.
fn every_case() -> Vec<VerdictJson> {
    let negative = Scenario {
        after_read_ns: -300 * MS,
        ..Scenario::healthy(600 * MS)
    };
    vec![
        json_of(&incident()),
        json_of(&Scenario::healthy(20 * MS)),
        json(&without_client_span(&incident())),
        json(&without_server_span(&incident())),
        json(&spans_alone(&incident())),
        json(&retried()),
        json_of(&negative),
        without_ledger(),
    ]
}

fn without_ledger() -> VerdictJson {
    let mut observed = without_client_span(&incident());
    observed.exchanges[0].milestones = skewtap_core::milestone::Milestones::default();
    let verdict = json(&observed);
    assert!(verdict.segments.is_empty());
    verdict
}

#[test]
fn the_headline_of_the_incident_says_it_all() {
    let verdict = json_of(&incident());
    let said = headline::of(&verdict);
    assert_eq!(said.figures, "client 8.021 s, server 7.510 s, wire 7.510 s");
    let after = "after the response had arrived and before the client read it";
    assert!(said.place.ends_with(after), "{}", said.place);
    let (lo, hi) = bounds_in(&said.place);
    assert!(
        lo <= 0.510 && 0.510 <= hi && hi - lo < 0.01,
        "{}",
        said.place
    );
    assert_eq!(said.cause, "cause: client_blind_sleep (observed)");
}

#[test]
fn the_headline_of_a_healthy_exchange_names_no_cause() {
    let said = headline::of(&json_of(&Scenario::healthy(20 * MS)));
    assert!(said.place.ends_with("is nothing unusual"), "{}", said.place);
    assert_eq!(said.cause, "");
}

#[test]
fn a_gap_without_a_cause_is_called_unexplained() {
    let slow = Scenario {
        after_read_ns: 300 * MS,
        ..Scenario::healthy(20 * MS)
    };
    let said = sentence(&json_of(&slow));
    assert!(
        said.contains("after the client had read the response"),
        "{said}"
    );
    assert!(said.ends_with("cause: unexplained"), "{said}");
    assert!(page(&json_of(&slow)).contains("No cause is named"));
}

#[test]
fn without_a_client_span_the_reads_stand_in_for_it() {
    let verdict = json(&without_client_span(&incident()));
    let said = headline::of(&verdict);
    let (lo, hi) = bounds_in(&said.figures);
    // From the first request byte to the read.
    assert!(lo <= 8.020_49 && 8.020_49 <= hi, "{}", said.figures);
    assert!(said.figures.contains("it sent no span"));
    assert_eq!(said.cause, "cause: client_blind_sleep (observed)");
    let text = text_of(&page(&verdict));
    assert!(text.contains("no client span arrived"));
    assert!(text.contains("The client's span: the client is judged by when it read"));
}

#[test]
fn without_a_server_span_its_time_is_unknown() {
    let verdict = json(&without_server_span(&incident()));
    assert!(sentence(&verdict).contains("server unknown, wire 7.510 s"));
    let text = text_of(&page(&verdict));
    assert!(text.contains("no server span arrived"));
    assert!(text.contains("The server's span: its time cannot be told"));
}

#[test]
fn without_a_ledger_the_page_says_so() {
    let text = text_of(&page(&without_ledger()));
    assert!(text.contains("There is no ledger"), "{text}");
    assert!(text.contains("too little was seen to say where the time went"));
}

#[test]
fn a_server_that_saw_more_than_its_client_is_said_to() {
    let negative = Scenario {
        after_read_ns: -300 * MS,
        ..Scenario::healthy(600 * MS)
    };
    let verdict = json_of(&negative);
    // Of the client's 0.30097 s and the server's 0.6 s.
    assert!(sentence(&verdict).contains("the server's span is 0.299 s longer than the client's"));
    let text = text_of(&page(&verdict));
    assert!(text.contains("Contradictions"));
    assert!(text.contains("client_span_ends_early"));
}

#[test]
fn the_rows_shown_add_up_to_the_total_shown() {
    let mut tables = 0;
    for verdict in every_case() {
        let Some(table) = ledger_table::of(&verdict) else {
            continue;
        };
        tables += 1;
        let sum: i64 = table.rows.iter().map(|row| nanoseconds(&row.counted)).sum();
        assert_eq!(sum, nanoseconds(&table.total));
    }
    assert_eq!(tables, 7);
    let table = ledger_table::of(&json_of(&incident())).unwrap();
    assert_eq!(nanoseconds(&table.total), incident().client_ns());
    assert_eq!(table.total_is, "The client's span");
}

#[test]
fn shown_bounds_contain_the_truth() {
    let table = ledger_table::of(&json_of(&incident())).unwrap();
    let row = table.rows.iter().find(|row| row.name == "client_unread");
    let row = row.unwrap();
    assert!(nanoseconds(&row.lo) * 1000 <= 510 * MS && 510 * MS <= nanoseconds(&row.hi) * 1000);
    assert!(row.stands_out);
    assert_eq!(row.finding, Some(1));
    let others = table.rows.iter().filter(|row| row.stands_out);
    assert_eq!(others.count(), 1);
}

#[test]
fn the_rest_stands_out_where_it_is_what_was_flagged() {
    let table = ledger_table::of(&json(&spans_alone(&incident()))).unwrap();
    let marked: Vec<&str> = table
        .rows
        .iter()
        .filter(|row| row.stands_out)
        .map(|row| row.name.as_str())
        .collect();
    assert_eq!(marked, ["unexplained"]);
}

#[test]
fn each_of_several_exchanges_has_its_heading() {
    let table = ledger_table::of(&json(&retried())).unwrap();
    let headings: Vec<(&str, &str)> = table
        .rows
        .iter()
        .filter_map(|row| Some((row.heading.as_deref()?, row.name.as_str())))
        .collect();
    assert_eq!(
        headings,
        [
            ("Exchange 1 of 2", "request_transfer"),
            ("Exchange 2 of 2", "request_transfer")
        ]
    );
    let mut short = json(&retried());
    short.segments.retain(|row| row.name == "request_transfer");
    let short = ledger_table::of(&short).unwrap();
    assert!(short.rows.iter().all(|row| row.heading.is_some()));
    let one = ledger_table::of(&json_of(&incident())).unwrap();
    assert!(one.rows.iter().all(|row| row.heading.is_none()));
}

#[test]
fn evidence_and_what_would_refute_it_are_shown() {
    let verdict = json_of(&incident());
    let text = text_of(&page(&verdict));
    let finding = &verdict.findings[0];
    assert!(!finding.evidence.is_empty());
    for said in &finding.evidence {
        assert!(text.contains(&said.statement), "{}", said.statement);
    }
    assert!(text.contains(finding.refuted_by.as_ref()));
}

#[test]
fn nothing_that_was_sent_is_taken_for_markup() {
    let evil = "</title><script>alert('x')</script>\"><img src=x onerror=alert(1)>";
    let mut observed = observed(&incident());
    observed.exchanges[0].path = format!("/{evil}");
    observed.exchanges[0].authority = evil.to_owned();
    observed.exchanges[0].method = evil.to_owned();
    observed.client.as_mut().unwrap().service = evil.to_owned();
    observed.servers[0].service = evil.to_owned();
    observed.servers[0].route = Some(evil.to_owned());
    observed.exchanges[0]
        .client_process
        .as_mut()
        .unwrap()
        .command = evil.to_owned();
    let html = page(&json(&observed));
    assert!(!html.contains("<script>") && !html.contains("<img src=x"));
    assert!(text_of(&html).contains(evil));
    assert_well_formed(&html);
}

#[test]
fn names_of_a_later_version_are_shown_as_they_are() {
    let mut verdict = json_of(&incident());
    verdict.segments[0].name = "of_a_later_version".into();
    verdict.bars[0].lane = "of_a_later_version".into();
    verdict.quality.missing.push("something_new".into());
    let html = page(&verdict);
    assert!(html.contains("of_a_later_version") && html.contains("something_new"));
}

#[test]
fn every_page_is_well_formed() {
    for verdict in every_case() {
        assert_well_formed(&page(&verdict));
    }
}
