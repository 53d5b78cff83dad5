//! Flags for how long and how much the collector keeps.

use std::time::Duration;

use clap::Args;
use jiff::SpanRelativeTo;
use skewtap_collector::Retention;

/// Units of a size, the longest name first.
const UNITS: [(&str, u64); 4] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

/// How long and how much to keep.
#[derive(Debug, Args)]
pub(crate) struct KeepingArgs {
    /// How long verdicts are kept, 1m to 3650d
    #[arg(
        long,
        value_name = "TIME",
        env = "SKEWTAP_RETENTION_AGE",
        default_value = "7d",
        value_parser = age
    )]
    pub(crate) retention_age: Duration,
    /// How much of the disk verdicts may take, 16MiB or more; the oldest go first
    #[arg(
        long,
        value_name = "SIZE",
        env = "SKEWTAP_RETENTION_SIZE",
        default_value = "4GiB",
        value_parser = size
    )]
    pub(crate) retention_size: u64,
    /// How much of the disk batches may take that wait for what belongs to them, 16MiB or more; what
    /// comes when it is used up is refused, to be sent again
    #[arg(
        long,
        value_name = "SIZE",
        env = "SKEWTAP_BACKLOG_SIZE",
        default_value = "1GiB",
        value_parser = size
    )]
    pub(crate) backlog_size: u64,
}

impl KeepingArgs {
    /// What the store is told.
    pub(crate) const fn retention(&self) -> Retention {
        Retention {
            age: self.retention_age,
            bytes: self.retention_size,
        }
    }
}

fn age(text: &str) -> Result<Duration, String> {
    let minute = Duration::from_secs(60);
    let range = minute..=Duration::from_secs(3_650 * 24 * 3_600);
    text.parse::<jiff::Span>()
        .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()))
        .ok()
        .and_then(|age| Duration::try_from(age).ok())
        .filter(|age| range.contains(age))
        .ok_or_else(|| "write a time from 1m to 3650d, such as 7d".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = UNITS.iter().find_map(|(unit, bytes)| {
        let number = text.strip_suffix(unit)?.trim_end();
        number.parse::<u64>().ok()?.checked_mul(*bytes)
    });
    bytes
        .filter(|bytes| *bytes >= 16 << 20)
        .ok_or_else(|| "write a size of at least 16MiB, such as 500MiB or 4GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_can_be_given_in_days() {
        assert_eq!(age("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(age("2h30m"), Ok(Duration::from_secs(9_000)));
        assert_eq!(age("1w"), age("7d"));
        for bad in ["", "7", "0d", "59s", "3651d", "-1d", "9999999999d"] {
            assert!(age(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_size_has_a_unit_and_a_least() {
        assert_eq!(size("16MiB"), Ok(16 << 20));
        assert_eq!(size("4 GiB"), Ok(4 << 30));
        assert_eq!(size("20000KiB"), Ok(20_000 << 10));
        for bad in ["", "4", "4GB", "-4GiB", "1MiB", "99999999999TiB", "1.5GiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
