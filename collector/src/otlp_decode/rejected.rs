//! The spans of a request that cannot be used, and why.

use std::collections::BTreeMap;
use std::fmt;

use skewtap_core::exchange_attributes::ReadError;
use skewtap_core::ids::IdError;

use super::LARGEST_EXCHANGE;

/// The spans of a request that cannot be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// How many there are for each reason.
    pub by_reason: BTreeMap<RejectReason, u64>,
    /// What was wrong with the first of them, in words.
    pub first: Option<String>,
}

impl Rejected {
    /// How many there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason.values().sum()
    }

    pub(super) fn count(&mut self, error: &SpanError) {
        *self.by_reason.entry(error.reason()).or_default() += 1;
        if self.first.is_none() {
            self.first = Some(error.to_string());
        }
    }
}

/// Words for the sender: how many of what, and an example.
impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} spans rejected:", self.total())?;
        for (reason, count) in &self.by_reason {
            write!(f, " {} ({count})", reason.name())?;
        }
        match &self.first {
            Some(first) => write!(f, "; first: {first}"),
            None => Ok(()),
        }
    }
}

/// Why a span cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectReason {
    /// Its trace id or its own id is missing, all zero or of the wrong length.
    BadId,
    /// A time is missing or beyond what 64 signed bits of nanoseconds hold.
    BadTime,
    /// Its end is before its start.
    EndBeforeStart,
    /// It lasts more than a day.
    TooLong,
    /// It says that it is an exchange, and cannot be read as one.
    BadExchange,
    /// It says that it is an exchange, and is larger than any can be.
    TooLarge,
}

impl RejectReason {
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::BadId,
        Self::BadTime,
        Self::EndBeforeStart,
        Self::TooLong,
        Self::BadExchange,
        Self::TooLarge,
    ];

    /// The name used in metrics and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadId => "bad_id",
            Self::BadTime => "bad_time",
            Self::EndBeforeStart => "end_before_start",
            Self::TooLong => "too_long",
            Self::BadExchange => "bad_exchange",
            Self::TooLarge => "too_large",
        }
    }
}

/// What is wrong with a span.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpanError {
    #[error("{which} of span {name:?}: {source}")]
    Id {
        which: &'static str,
        name: String,
        source: IdError,
    },
    #[error("{which} of span {name:?} is {value}, not a time in nanoseconds since 1970")]
    Time {
        which: &'static str,
        name: String,
        value: u64,
    },
    #[error("span {name:?} ends {by_ns} ns before it starts")]
    EndBeforeStart { name: String, by_ns: i64 },
    #[error("span {name:?} lasts {lasts_ns} ns, more than a day")]
    TooLong { name: String, lasts_ns: i64 },
    #[error("exchange {name:?}: {source}")]
    Exchange { name: String, source: ReadError },
    #[error("exchange {name:?} has {bytes} bytes, more than {LARGEST_EXCHANGE}")]
    TooLarge { name: String, bytes: usize },
}

impl SpanError {
    const fn reason(&self) -> RejectReason {
        match self {
            Self::Id { .. } => RejectReason::BadId,
            Self::Time { .. } => RejectReason::BadTime,
            Self::EndBeforeStart { .. } => RejectReason::EndBeforeStart,
            Self::TooLong { .. } => RejectReason::TooLong,
            Self::Exchange { .. } => RejectReason::BadExchange,
            Self::TooLarge { .. } => RejectReason::TooLarge,
        }
    }
}
