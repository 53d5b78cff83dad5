//! What is drawn lies where the truth is.

use proptest::prelude::*;
use skewtap_core::verdict_json::{BarJson, VerdictJson};
use skewtap_simulator::scenario::Scenario;
use skewtap_simulator::world::World;

use super::cases::{
    MS, S, incident, json, json_of, observed, retried, spans_alone, without_client_span,
    without_server_span,
};
use crate::web::pages::waterfall::{BarView, LEFT, MOST_BARS, RIGHT, Stretch, Waterfall};

/// Coordinates are rounded to this.
const ROUNDED: f64 = 0.011;

/// True times of the incident in seconds after the first request byte.
const ARRIVED: f64 = 7.510_49;
const READ: f64 = 8.020_49;

/// Where an instant lies according to the labels of the gridlines.
fn x_of(picture: &Waterfall, seconds: f64) -> f64 {
    let at = |label: &str| label.replace('\u{2212}', "-").parse::<f64>().unwrap();
    let (first, last) = (&picture.ticks[0], picture.ticks.last().unwrap());
    let (from, to) = (at(&first.label), at(&last.label));
    first.x + (seconds - from) / (to - from) * (last.x - first.x)
}

fn bar<'a>(picture: &'a Waterfall, title: &str) -> &'a BarView {
    let found = picture.bars.iter().find(|bar| bar.title.starts_with(title));
    found.unwrap_or_else(|| panic!("no bar {title}: {:?}", picture.bars))
}

fn end(stretch: Stretch) -> f64 {
    stretch.x + stretch.width
}

/// Holds a stretch for all that may be, and one for what must be, against the truth.
fn assert_brackets(picture: &Waterfall, bar: (Stretch, Option<Stretch>), from: f64, to: f64) {
    let (from, to) = (x_of(picture, from), x_of(picture, to));
    let (possible, certain) = bar;
    assert!(possible.x <= from + ROUNDED && end(possible) >= to - ROUNDED);
    if let Some(certain) = certain {
        assert!(certain.x >= from - ROUNDED && end(certain) <= to + ROUNDED);
        assert!(certain.x >= possible.x && end(certain) <= end(possible) + ROUNDED);
    }
}

#[test]
fn the_unread_response_is_drawn_where_it_lay_unread() {
    let verdict = json_of(&incident());
    for picture in [
        Waterfall::of(&verdict).unwrap(),
        Waterfall::close_up(&verdict).unwrap(),
    ] {
        let [gap] = picture.gaps.as_slice() else {
            panic!("one gap: {:?}", picture.gaps);
        };
        assert_brackets(&picture, (gap.possible, gap.certain), ARRIVED, READ);
        assert!(gap.certain.is_some());
        let client = picture.lanes.iter().find(|lane| lane.name == "client");
        let client = client.unwrap();
        assert!(gap.y > client.y && gap.y + gap.height < client.y + client.height);
        let label = &gap.label.as_ref().unwrap().text;
        assert!(label.starts_with("Client, response unread: "), "{label}");
    }
}

#[test]
fn each_bar_lies_where_its_seconds_say() {
    let picture = Waterfall::of(&json_of(&incident())).unwrap();
    for (title, from, to) in [
        ("client span", -0.000_4, 8.020_58),
        ("server span", 0.000_31, 7.510_31),
        ("wire waiting", 0.000_16, 7.510_43),
    ] {
        let bar = bar(&picture, title);
        assert_brackets(&picture, (bar.possible, bar.certain), from, to);
        let certain = bar.certain.unwrap();
        assert!((certain.width - (x_of(&picture, to) - x_of(&picture, from))).abs() < 0.5);
    }
}

#[test]
fn a_small_gap_is_shown_again_enlarged() {
    let verdict = json_of(&incident());
    let share = |picture: Waterfall| picture.gaps[0].possible.width / (RIGHT - LEFT);
    assert!(share(Waterfall::of(&verdict).unwrap()) < 0.1);
    assert!(share(Waterfall::close_up(&verdict).unwrap()) > 0.5);
    let large = Scenario {
        unread_ns: 2 * S,
        ..Scenario::healthy(S)
    };
    let large = json_of(&large);
    assert_eq!(Waterfall::close_up(&large), None);
    assert_eq!(Waterfall::of(&large).unwrap().gaps.len(), 1);
}

#[test]
fn a_healthy_exchange_shows_no_gap() {
    let verdict = json_of(&Scenario::healthy(20 * MS));
    assert!(Waterfall::of(&verdict).unwrap().gaps.is_empty());
    assert_eq!(Waterfall::close_up(&verdict), None);
}

#[test]
fn gaps_on_both_ends_of_the_client_are_drawn_beside_its_bytes() {
    let scenario = Scenario {
        before_send_ns: 200 * MS,
        after_read_ns: 300 * MS,
        ..Scenario::healthy(20 * MS)
    };
    let picture = Waterfall::of(&json_of(&scenario)).unwrap();
    let read = 0.020_57;
    let [before, after] = picture.gaps.as_slice() else {
        panic!("two gaps: {:?}", picture.gaps);
    };
    assert_brackets(&picture, (before.possible, before.certain), -0.2, 0.0);
    assert_brackets(&picture, (after.possible, after.certain), read, read + 0.3);
}

#[test]
fn gaps_around_the_servers_span_are_drawn_beside_it() {
    let scenario = Scenario {
        before_server_span_ns: 100 * MS,
        after_server_span_ns: 150 * MS,
        ..Scenario::healthy(20 * MS)
    };
    let picture = Waterfall::of(&json_of(&scenario)).unwrap();
    let [before, after] = picture.gaps.as_slice() else {
        panic!("two gaps: {:?}", picture.gaps);
    };
    let (asked, start) = (0.000_16, 0.100_16);
    assert_brackets(&picture, (before.possible, before.certain), asked, start);
    // The drawing ends it when the response had been passed on, 60 µs later.
    let (end, passed_on) = (0.120_16, 0.270_22);
    assert_brackets(&picture, (after.possible, after.certain), end, passed_on);
}

#[test]
fn of_several_exchanges_the_one_that_lagged_is_marked() {
    let verdict = json(&retried());
    let picture = Waterfall::of(&verdict).unwrap();
    let first_s = 0.2 + 0.001_06 + 0.3;
    let arrived = first_s + 1.000_49;
    let [gap] = picture.gaps.as_slice() else {
        panic!("one gap: {:?}", picture.gaps);
    };
    assert_brackets(
        &picture,
        (gap.possible, gap.certain),
        arrived,
        arrived + 0.4,
    );
}

#[test]
fn doubt_about_a_clock_is_drawn_as_doubt() {
    let elsewhere = World {
        endpoints_here: false,
        client_ahead_ns: 3 * S,
        ..World::PLAIN
    };
    let picture = Waterfall::of(&json(&incident().observe(&elsewhere))).unwrap();
    let span = bar(&picture, "client span");
    assert_brackets(&picture, (span.possible, span.certain), -0.000_4, 8.020_58);
    let certain = span.certain.map_or(0.0, |certain| certain.width);
    assert!(span.possible.width - certain > 10.0, "{span:?}");
    assert!(span.title.ends_with("8.021 s long"), "{}", span.title);
}

#[test]
fn a_lane_says_why_it_is_empty() {
    let note = |verdict: &VerdictJson, lane: &str| {
        let picture = Waterfall::of(verdict).unwrap();
        let lane = picture.lanes.iter().find(|other| other.name == lane);
        lane.unwrap().note
    };
    let no_client = json(&without_client_span(&incident()));
    assert_eq!(note(&no_client, "client"), Some("no client span arrived"));
    assert_eq!(note(&no_client, "server"), None);
    let no_server = json(&without_server_span(&incident()));
    assert_eq!(note(&no_server, "server"), Some("no server span arrived"));
    assert_eq!(note(&json_of(&incident()), "client"), None);
}

#[test]
fn without_stamps_there_is_nothing_to_draw() {
    assert_eq!(Waterfall::of(&json(&spans_alone(&incident()))), None);
}

#[test]
fn the_text_names_every_bar_and_gap() {
    let text = Waterfall::of(&json_of(&incident())).unwrap().description;
    for part in [
        "client span from",
        "wire waiting from",
        "server span from",
        "Gap: Client",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn what_is_too_much_to_draw_is_counted() {
    let mut verdict = json_of(&incident());
    let bar = verdict.bars[0].clone();
    verdict.bars.resize(MOST_BARS + 7, bar);
    let picture = Waterfall::of(&verdict).unwrap();
    assert_eq!(picture.bars.len(), MOST_BARS);
    assert_eq!(picture.left_out, 7);
}

fn any_bar() -> impl Strategy<Value = BarJson> {
    let lane = prop_oneof![
        Just("client"),
        Just("wire"),
        Just("server"),
        Just("elsewhere")
    ];
    let name = prop_oneof![Just("span"), Just("unread"), Just("waiting"), Just("other")];
    let instant = prop_oneof![
        -10.0..10.0_f64,
        proptest::num::f64::ANY.prop_filter("JSON has no NaN", |x| !x.is_nan()),
    ];
    (lane, name, proptest::array::uniform4(instant)).prop_map(|(lane, name, at)| BarJson {
        lane: lane.into(),
        name: name.to_owned(),
        exchange: None,
        start_lo_seconds: at[0],
        start_hi_seconds: at[1],
        end_lo_seconds: at[2],
        end_hi_seconds: at[3],
    })
}

proptest! {
    #[test]
    fn nothing_is_drawn_outside_the_picture(bars in proptest::collection::vec(any_bar(), 0..40)) {
        let mut verdict = json_of(&gaps_everywhere());
        verdict.bars = bars;
        for picture in [Waterfall::of(&verdict), Waterfall::close_up(&verdict)].into_iter().flatten() {
            let bars = picture.bars.iter().flat_map(|bar| [Some(bar.possible), bar.certain]);
            let gaps = picture.gaps.iter().flat_map(|gap| [Some(gap.possible), gap.certain]);
            for stretch in bars.chain(gaps).flatten() {
                prop_assert!(stretch.width > 0.0);
                prop_assert!(stretch.x >= LEFT && end(stretch) <= RIGHT + ROUNDED, "{stretch:?}");
            }
            for tick in &picture.ticks {
                prop_assert!(tick.x >= LEFT && tick.x <= RIGHT);
            }
        }
    }
}

/// A call with gaps of every kind, so that random bars meet all of them.
fn gaps_everywhere() -> Scenario {
    Scenario {
        before_send_ns: 200 * MS,
        before_server_span_ns: 100 * MS,
        after_server_span_ns: 150 * MS,
        after_read_ns: 300 * MS,
        ..incident()
    }
}

#[test]
fn labels_stay_within_the_picture() {
    for observed in [
        observed(&incident()),
        observed(&gaps_everywhere()),
        retried(),
        without_client_span(&incident()),
    ] {
        let verdict = json(&observed);
        for picture in [Waterfall::of(&verdict), Waterfall::close_up(&verdict)] {
            let Some(picture) = picture else { continue };
            let frame = picture.frame;
            let of_bars = picture.bars.iter().filter_map(|bar| bar.label.as_ref());
            let of_gaps = picture.gaps.iter().filter_map(|gap| gap.label.as_ref());
            for label in of_bars.chain(of_gaps) {
                let width = 6.0 * f64::from(u32::try_from(label.text.chars().count()).unwrap());
                let from = match label.anchor {
                    "start" => label.x,
                    "end" => label.x - width,
                    _ => label.x - width / 2.0,
                };
                assert!(from >= LEFT && from + width <= frame.width, "{label:?}");
                assert!(label.y > frame.top && label.y < frame.top + frame.height);
            }
        }
    }
}
