//! The times that `since` and `until` accept.

use jiff::{SignedDuration, Timestamp};

/// A text that is no time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no time; give one such as 2026-01-31T12:00:00Z, seconds since 1970, \
     or how long ago, such as 15m"
)]
pub(super) struct NoTime(String);

/// Nanoseconds since the Unix epoch, from an RFC 3339 time, from seconds since the Unix epoch,
/// or from a length such as `15m` or `2h30m`, which means that long before `now_ns`.
///
/// # Errors
/// [`NoTime`] for anything else, and for times that 64 bits of nanoseconds do not hold.
pub(super) fn parse(text: &str, now_ns: i64) -> Result<i64, NoTime> {
    let no_time = || NoTime(text.to_owned());
    if let Ok(time) = text.parse::<Timestamp>() {
        return i64::try_from(time.as_nanosecond()).map_err(|_| no_time());
    }
    let bytes = text.strip_prefix('-').unwrap_or(text).as_bytes();
    if let Some(b'0'..=b'9') = bytes.last() {
        return unix_seconds(text).ok_or_else(no_time);
    }
    let ago: SignedDuration = text.parse().map_err(|_| no_time())?;
    let ago_ns = i64::try_from(ago.as_nanos()).map_err(|_| no_time())?;
    now_ns.checked_sub(ago_ns).ok_or_else(no_time)
}

/// Seconds with at most nine decimals, exactly.
fn unix_seconds(text: &str) -> Option<i64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits_only(whole) || !digits_only(decimals) || decimals.len() > 9 {
        return None;
    }
    let nanos: i64 = format!("{decimals:0<9}").parse().ok()?;
    whole
        .parse::<i64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000_000_000;
    const S: i64 = 1_000_000_000;

    #[test]
    fn all_three_forms_are_understood() {
        assert_eq!(parse("1970-01-01T00:00:01.5Z", NOW), Ok(1_500_000_000));
        assert_eq!(parse("1970-01-01T01:00:00+01:00", NOW), Ok(0));
        assert_eq!(parse("1700000000", NOW), Ok(1_700_000_000 * S));
        assert_eq!(
            parse("1700000000.000000001", NOW),
            Ok(1_700_000_000 * S + 1)
        );
        assert_eq!(parse("15m", NOW), Ok(NOW - 900 * S));
        assert_eq!(parse("1h30m", NOW), Ok(NOW - 5400 * S));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "-",
            "yesterday",
            "15 parsecs",
            "1.2.3",
            "99999999999999999999",
            "1e9",
            "9999999999999999",
            "2026-13-01T00:00:00Z",
            "\u{1f552}",
            "1.0000000001",
            "-5",
        ] {
            assert!(parse(text, NOW).is_err(), "{text:?} was taken");
        }
    }
}
