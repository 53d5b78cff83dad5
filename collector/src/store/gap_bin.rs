//! Size classes of gaps, so that counts of them can stand for the gaps themselves.
//!
//! A class spans at most an eighth of its lower bound (below 16 µs, one microsecond), so a
//! quantile read off the counts is known within 12.5 %. The numbers of the classes are in
//! stores: they do not change.

use skewtap_core::clock::Interval;

/// The class of a gap that is not known.
const UNKNOWN: i64 = 1_000_000;

/// Classes below this number are one microsecond wide.
const LINEAR: i64 = 16;

/// Classes for each doubling from there on.
const PER_DOUBLING: i64 = 8;

/// The class of a gap in nanoseconds. Classes are in the order of their gaps.
pub(super) fn of(gap_ns: Option<i64>) -> i64 {
    match gap_ns {
        None => UNKNOWN,
        Some(ns) if ns < 0 => -1 - of_length(ns.saturating_neg() / 1_000),
        Some(ns) => of_length(ns / 1_000),
    }
}

/// The gaps of a class in nanoseconds, both ends included; `None` for gaps that are not known.
pub(super) fn bounds(class: i64) -> Option<Interval> {
    if class == UNKNOWN {
        return None;
    }
    if class < 0 {
        let (lo, hi) = length_bounds(-1 - class);
        return Some(Interval::between(hi.saturating_neg(), lo.saturating_neg()));
    }
    let (lo, hi) = length_bounds(class);
    Some(Interval::between(lo, hi))
}

/// The class of a length in microseconds, which is not negative.
fn of_length(us: i64) -> i64 {
    if us < LINEAR {
        return us;
    }
    let doublings = i64::from(us.ilog2()) - 4;
    let within = (us >> (doublings + 1)) - PER_DOUBLING;
    LINEAR + doublings * PER_DOUBLING + within
}

/// The shortest and the longest length of a class, in nanoseconds.
fn length_bounds(class: i64) -> (i64, i64) {
    let (first_us, count) = if class < LINEAR {
        (class, 1)
    } else {
        // Real classes have at most 50 doublings.
        let doublings = ((class - LINEAR) / PER_DOUBLING).min(50);
        let within = (class - LINEAR) % PER_DOUBLING;
        let count = 1_i64 << (doublings + 1);
        ((PER_DOUBLING + within).saturating_mul(count), count)
    };
    let next_us = first_us.saturating_add(count);
    let lo = first_us.saturating_mul(1_000);
    (lo, next_us.saturating_mul(1_000).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_class_contains_its_gap_and_is_narrow(gap in any::<i64>()) {
            // Beyond a century the ends are cut off, which no gap reaches.
            let gap = gap / 4;
            let within = bounds(of(Some(gap))).unwrap();
            prop_assert!(within.contains(gap), "{gap} {within:?}");
            prop_assert!(within.width() <= 999 + gap.abs() / 8);
        }

        #[test]
        fn longer_gaps_have_no_lower_class(a in any::<i64>(), b in any::<i64>()) {
            prop_assert_eq!(of(Some(a.min(b))) <= of(Some(a.max(b))), true);
        }
    }

    #[test]
    fn the_numbers_are_those_in_stores() {
        for (gap, class) in [
            (0, 0),
            (999, 0),
            (1_000, 1),
            (16_000, 16),
            (18_000, 17),
            (31_999, 23),
            (32_000, 24),
            (-1, -1),
            (-1_000, -2),
            (1_000_000_000, 143),
        ] {
            assert_eq!(of(Some(gap)), class, "{gap}");
        }
        assert_eq!(bounds(of(None)), None);
        let second = bounds(143).unwrap();
        assert!(second.contains(1_000_000_000), "{second:?}");
    }
}
