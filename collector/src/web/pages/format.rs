//! Lengths and instants as the pages write them.
//!
//! Lengths are seconds with a fixed number of decimals, so that they align. A length that is not
//! zero is never written as zero.

use jiff::Timestamp;
use skewtap_core::clock::Interval;

const NS_PER_MS: i64 = 1_000_000;
const NS_PER_US: i64 = 1_000;

/// Lengths from here on are written in sentences with three decimals, shorter ones with six.
const LONG_NS: i64 = 10 * NS_PER_MS;

/// A number of seconds whose decimals are shown in groups of three: those after the first group
/// are there to be exact, and are drawn so that they do not distract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digits {
    /// Up to milliseconds, with sign, such as `−0.511`.
    pub(super) milli: String,
    /// The microseconds, three digits.
    pub(super) micro: String,
    /// The nanoseconds, three digits; empty where they are not shown.
    pub(super) nano: String,
}

/// The nanoseconds of a number of seconds as JSON has it. What is not a number is zero.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast from a float saturates, and lengths are far below that"
)]
pub(super) fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// A length to the millisecond: `8.021`, `−0.511`; `<0.001` for one that would round to zero.
pub(super) fn millis(ns: i64) -> String {
    let whole = ns.saturating_add(ns.signum() * NS_PER_MS / 2) / NS_PER_MS;
    match ns.signum() {
        1 if whole == 0 => "<0.001".to_owned(),
        -1 if whole == 0 => ">\u{2212}0.001".to_owned(),
        _ => decimals(whole, 3),
    }
}

/// A length to the nanosecond.
pub(super) fn exact(ns: i64) -> Digits {
    grouped(&decimals(ns, 9))
}

/// A lower bound to the microsecond, rounded down so that it stays one.
pub(super) fn lower_bound(ns: i64) -> Digits {
    grouped(&decimals(ns.div_euclid(NS_PER_US), 6))
}

/// An upper bound to the microsecond, rounded up so that it stays one.
pub(super) fn upper_bound(ns: i64) -> Digits {
    let up = ns.div_euclid(NS_PER_US) + i64::from(ns.rem_euclid(NS_PER_US) != 0);
    grouped(&decimals(up, 6))
}

/// A length within bounds, for a sentence: `0.510 s`, or `0.509 to 0.511 s` rounded outwards.
pub(super) fn within(lo: i64, hi: i64) -> String {
    let (unit, places) = if lo.saturating_abs().max(hi.saturating_abs()) >= LONG_NS {
        (NS_PER_MS, 3)
    } else {
        (NS_PER_US, 6)
    };
    let nearest = |ns: i64| ns.saturating_add(ns.signum() * unit / 2) / unit;
    if nearest(lo) == nearest(hi) {
        return if nearest(lo) == 0 && (lo, hi) != (0, 0) {
            format!("less than {} s", decimals(1, places))
        } else {
            format!("{} s", decimals(nearest(lo), places))
        };
    }
    let down = lo.div_euclid(unit);
    let up = hi.div_euclid(unit) + i64::from(hi.rem_euclid(unit) != 0);
    format!("{} to {} s", decimals(down, places), decimals(up, places))
}

/// One known length, for a sentence.
pub(super) fn length(ns: i64) -> String {
    within(ns, ns)
}

/// A length of which bounds are known, to the millisecond: `0.511`, or `~0.511` where they differ
/// by more than that.
pub(super) fn about(within: Interval) -> String {
    let middle = millis(within.middle());
    if within.width() < NS_PER_MS {
        middle
    } else {
        format!("~{middle}")
    }
}

/// An instant in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instant {
    /// The day, such as `2023-11-14`.
    pub(super) day: String,
    /// The time of day to the millisecond, such as `22:13:20.000`.
    pub(super) time: String,
    /// Both to the nanosecond, as RFC 3339 has it.
    pub(super) machine: String,
}

/// The instant so many nanoseconds after the Unix epoch; `None` outside the calendar.
pub(super) fn instant(unix_ns: i64) -> Option<Instant> {
    let at = Timestamp::from_nanosecond(i128::from(unix_ns)).ok()?;
    Some(Instant {
        day: at.strftime("%F").to_string(),
        time: at.strftime("%T%.3f").to_string(),
        machine: at.to_string(),
    })
}

fn grouped(text: &str) -> Digits {
    let point = text.find('.').unwrap_or(text.len());
    let (milli, rest) = text.split_at((point + 4).min(text.len()));
    let (micro, nano) = rest.split_at(rest.len().min(3));
    Digits {
        milli: milli.to_owned(),
        micro: micro.to_owned(),
        nano: nano.to_owned(),
    }
}

/// A whole number of units that are 10 to the power of minus `places` seconds.
fn decimals(units: i64, places: u32) -> String {
    let sign = if units < 0 { "\u{2212}" } else { "" };
    let (units, scale) = (units.unsigned_abs(), 10_u64.pow(places));
    let width = usize::try_from(places).unwrap_or_default();
    format!("{sign}{}.{:0width$}", units / scale, units % scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(digits: &Digits) -> String {
        format!("{}{}{}", digits.milli, digits.micro, digits.nano)
    }

    #[test]
    fn a_length_that_is_not_zero_is_not_written_as_zero() {
        assert_eq!(millis(0), "0.000");
        assert_eq!(millis(80_000), "<0.001");
        assert_eq!(millis(-80_000), ">\u{2212}0.001");
        assert_eq!(millis(500_000), "0.001");
        assert_eq!(millis(8_021_060_000), "8.021");
        assert_eq!(millis(-511_060_000), "\u{2212}0.511");
        assert_eq!(length(0), "0.000000 s");
        assert_eq!(length(80_000), "0.000080 s");
        assert_eq!(length(80), "less than 0.000001 s");
    }

    #[test]
    fn exact_lengths_keep_every_nanosecond() {
        assert_eq!(joined(&exact(8_021_060_001)), "8.021060001");
        assert_eq!(joined(&exact(-1_500)), "\u{2212}0.000001500");
        assert_eq!(joined(&exact(-999)), "\u{2212}0.000000999");
        assert_eq!(joined(&exact(0)), "0.000000000");
    }

    #[test]
    fn bounds_are_rounded_outwards() {
        assert_eq!(joined(&lower_bound(1_999)), "0.000001");
        assert_eq!(joined(&upper_bound(1_001)), "0.000002");
        assert_eq!(joined(&lower_bound(-1)), "\u{2212}0.000001");
        assert_eq!(joined(&upper_bound(-1_999)), "\u{2212}0.000001");
        assert_eq!(joined(&upper_bound(2_000)), "0.000002");
    }

    #[test]
    fn a_sentence_gives_one_number_only_where_both_bounds_agree() {
        assert_eq!(within(509_900_000, 510_100_000), "0.510 s");
        assert_eq!(within(509_331_000, 511_340_000), "0.509 to 0.512 s");
        assert_eq!(
            within(-2_000_000, 3_000_000),
            "\u{2212}0.002000 to 0.003000 s"
        );
    }

    #[test]
    fn json_seconds_come_back_as_the_nanoseconds_they_were() {
        for ns in [1_i64, 999_999_999, 8_021_060_001, 86_400_000_000_007, -511] {
            #[expect(clippy::cast_precision_loss, reason = "far below 2 to the 53")]
            let seconds = ns as f64 / 1e9;
            assert_eq!(nanoseconds(seconds), ns);
        }
        assert_eq!(nanoseconds(f64::NAN), 0);
    }

    #[test]
    fn instants_are_utc() {
        let at = instant(1_700_000_000_123_456_789).unwrap();
        assert_eq!(
            (at.day.as_str(), at.time.as_str()),
            ("2023-11-14", "22:13:20.123")
        );
        assert_eq!(at.machine, "2023-11-14T22:13:20.123456789Z");
    }
}
