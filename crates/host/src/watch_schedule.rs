//! When to look again.

use std::time::Duration;

const FIRST: Duration = Duration::from_micros(50);
const LONGEST_AT_FIRST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(5);

/// How long to wait for the next look-up, after waiting `previous` for the last one and
/// `waited` in all.
///
/// It grows by a quarter each time up to 2 ms, so that a reader that is quick is caught within
/// a tenth of a millisecond; after a second it is a four-hundredth of the wait, up to 5 ms.
#[must_use]
pub(crate) fn next_interval(previous: Option<Duration>, waited: Duration) -> Duration {
    let Some(previous) = previous else {
        return FIRST;
    };
    if waited < Duration::from_secs(1) {
        (previous + previous / 4).min(LONGEST_AT_FIRST)
    } else {
        (waited / 400).clamp(LONGEST_AT_FIRST, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments of look-ups after which `seconds` have passed.
    fn schedule(seconds: u64) -> Vec<(Duration, Duration)> {
        let (mut at, mut interval, mut all) = (Duration::ZERO, None, Vec::new());
        while at < Duration::from_secs(seconds) {
            let next = next_interval(interval, at);
            at += next;
            interval = Some(next);
            all.push((at, next));
        }
        all
    }

    #[test]
    fn intervals_only_grow_and_stay_within_their_bounds() {
        let all = schedule(10);
        assert_eq!(all[0].1, FIRST);
        assert!(all.is_sorted_by_key(|(_, interval)| *interval));
        assert_eq!(all.last().unwrap().1, LONGEST);
        let within_a_second = all.iter().filter(|(at, _)| *at < Duration::from_secs(1));
        assert!(within_a_second.clone().all(|(_, i)| *i <= LONGEST_AT_FIRST));
        assert!(within_a_second.count() < 550);
    }

    #[test]
    fn what_is_read_in_five_milliseconds_is_bracketed_within_one() {
        let early = schedule(1)
            .into_iter()
            .take_while(|(at, _)| at.as_millis() < 5);
        assert!(
            early
                .into_iter()
                .all(|(_, interval)| interval.as_micros() < 1_100)
        );
    }
}
