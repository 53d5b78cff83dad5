//! The observations of one side of a match: each once, and not too many.

use std::cmp::Ordering;

use skewtap_core::reported_span::ReportedSpan;

use super::held_exchange::HeldExchange;

/// Observations of one side that one client span can have.
const MOST_OF_A_SIDE: usize = 64;

/// What became of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It was not there before.
    New,
    /// It was.
    Duplicate,
    /// There are too many of its side.
    NoRoom,
}

/// Of two forms of one exchange the one with more stamps stays: a proxy may send it again
/// once packets have told more.
pub(super) fn add_exchange(exchanges: &mut Vec<HeldExchange>, held: HeldExchange) -> Added {
    let same = exchanges
        .iter_mut()
        .find(|known| known.span_id() == held.span_id());
    if let Some(known) = same {
        return choose_fuller(known, held);
    }
    if exchanges.len() >= MOST_OF_A_SIDE {
        return Added::NoRoom;
    }
    push_exactly(exchanges, held);
    Added::New
}

fn choose_fuller(known: &mut HeldExchange, other: HeldExchange) -> Added {
    match known.stamps().cmp(&other.stamps()) {
        Ordering::Less => {
            *known = other;
            Added::New
        }
        Ordering::Equal => {
            // Any choice will do that does not depend on which came first.
            let text = |held: &HeldExchange| format!("{:?}", held.record());
            if text(known) < text(&other) {
                *known = other;
            }
            Added::Duplicate
        }
        Ordering::Greater => Added::Duplicate,
    }
}

/// Adds a span that is not there yet.
pub(super) fn add_span(spans: &mut Vec<ReportedSpan>, span: ReportedSpan) -> Added {
    if spans.contains(&span) {
        Added::Duplicate
    } else if spans.len() < MOST_OF_A_SIDE {
        push_exactly(spans, span);
        Added::New
    } else {
        Added::NoRoom
    }
}

/// Adds to a list that seldom has a second element: a list grown as usual would make room for
/// four at once, and there is one for each side of everything that is open.
fn push_exactly<T>(list: &mut Vec<T>, element: T) {
    list.reserve_exact(1);
    list.push(element);
}
