//! Times as intervals on a named clock.
//!
//! A time read on one clock cannot be subtracted from a time read on another:
//! that does not compile. The only bridge is a [`ClockOffset`], which carries
//! its own uncertainty, so whatever crosses it grows wider by that much.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Neg, Sub};

use serde::{Deserialize, Serialize};

/// A machine's or a process's idea of the time. Implemented by markers only.
pub trait Clock: Copy + fmt::Debug + Eq + 'static {
    /// The name printed beside a time of this clock.
    const NAME: &'static str;
}

/// `CLOCK_REALTIME` of the machine on which the proxy runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyClock;

/// The clock that a client's spans were stamped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientClock;

/// The clock that a server's spans were stamped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerClock;

impl Clock for ProxyClock {
    const NAME: &'static str = "proxy";
}
impl Clock for ClientClock {
    const NAME: &'static str = "client";
}
impl Clock for ServerClock {
    const NAME: &'static str = "server";
}

/// A signed length of time in nanoseconds, known to lie within `[lo, hi]`.
///
/// Arithmetic saturates at the ends of `i64` (292 years), which can only widen
/// an interval, never move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    lo: i64,
    hi: i64,
}

impl Interval {
    /// The interval from `a` to `b`, whichever is the smaller.
    #[must_use]
    #[inline]
    pub fn between(a: i64, b: i64) -> Self {
        Self {
            lo: a.min(b),
            hi: a.max(b),
        }
    }

    /// A length known exactly.
    #[must_use]
    pub const fn exactly(ns: i64) -> Self {
        Self { lo: ns, hi: ns }
    }

    /// The smallest length it can be, in nanoseconds.
    #[must_use]
    pub const fn lo(self) -> i64 {
        self.lo
    }

    /// The largest length it can be, in nanoseconds.
    #[must_use]
    pub const fn hi(self) -> i64 {
        self.hi
    }

    /// How much is not known about it, in nanoseconds; never negative.
    #[must_use]
    pub const fn width(self) -> i64 {
        self.hi.saturating_sub(self.lo)
    }

    /// Halfway between the bounds, rounded towards `lo`.
    #[must_use]
    pub const fn middle(self) -> i64 {
        self.lo.saturating_add(self.width() / 2)
    }

    /// Whether `ns` is one of the lengths it can be.
    #[must_use]
    pub const fn contains(self, ns: i64) -> bool {
        self.lo <= ns && ns <= self.hi
    }

    /// What both allow, or `None` where they contradict each other.
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        (lo <= hi).then_some(Self { lo, hi })
    }

    /// The same length, less certain by `ns` on either side.
    #[must_use]
    pub const fn widened(self, ns: i64) -> Self {
        Self {
            lo: self.lo.saturating_sub(ns),
            hi: self.hi.saturating_add(ns),
        }
    }
}

impl Add for Interval {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            lo: self.lo.saturating_add(other.lo),
            hi: self.hi.saturating_add(other.hi),
        }
    }
}

impl Sub for Interval {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            lo: self.lo.saturating_sub(other.hi),
            hi: self.hi.saturating_sub(other.lo),
        }
    }
}

impl Neg for Interval {
    type Output = Self;
    fn neg(self) -> Self {
        Self {
            lo: self.hi.saturating_neg(),
            hi: self.lo.saturating_neg(),
        }
    }
}

/// Where a stamp was taken, from the most to the least trustworthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A captured packet.
    Packet,
    /// The kernel's receive stamp on a socket.
    Kernel,
    /// The clock read before and after a `write`.
    WriteBracket,
    /// Look-ups of a socket's queue before and after the event.
    Queue,
    /// The proxy's own clock after a `read`; includes its scheduling delay.
    User,
    /// What a span says of itself.
    Span,
}

impl Source {
    /// Every source, most trustworthy first.
    pub const ALL: [Self; 6] = [
        Self::Packet,
        Self::Kernel,
        Self::WriteBracket,
        Self::Queue,
        Self::User,
        Self::Span,
    ];

    /// The name used in attributes, JSON and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Kernel => "kernel",
            Self::WriteBracket => "write-bracket",
            Self::Queue => "queue",
            Self::User => "user",
            Self::Span => "span",
        }
    }

    /// The inverse of [`Source::name`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An instant on clock `C`, in nanoseconds since the Unix epoch, known to lie
/// within `[lo, hi]`, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<C: Clock> {
    within: Interval,
    source: Source,
    clock: PhantomData<C>,
}

impl<C: Clock> Stamp<C> {
    /// An instant between `a` and `b`, whichever is the earlier.
    #[must_use]
    pub fn between(a: i64, b: i64, source: Source) -> Self {
        Self {
            within: Interval::between(a, b),
            source,
            clock: PhantomData,
        }
    }

    /// An instant read from a clock as `ns`.
    #[must_use]
    pub fn at(ns: i64, source: Source) -> Self {
        Self::between(ns, ns, source)
    }

    /// The earliest it can have been.
    #[must_use]
    pub const fn lo(self) -> i64 {
        self.within.lo()
    }

    /// The latest it can have been.
    #[must_use]
    pub const fn hi(self) -> i64 {
        self.within.hi()
    }

    /// Nanoseconds between the earliest and the latest.
    #[must_use]
    pub const fn width(self) -> i64 {
        self.within.width()
    }

    /// Where it was taken.
    #[must_use]
    pub const fn source(self) -> Source {
        self.source
    }

    /// The same instant read on clock `D`.
    #[must_use]
    pub fn on<D: Clock>(self, offset: ClockOffset<C, D>) -> Stamp<D> {
        Stamp {
            within: self.within - offset.within,
            source: self.source,
            clock: PhantomData,
        }
    }
}

/// The time that passed from `other` to `self`, on one clock.
impl<C: Clock> Sub for Stamp<C> {
    type Output = Interval;
    fn sub(self, other: Self) -> Interval {
        self.within - other.within
    }
}

/// How far clock `A` is ahead of clock `B`, in nanoseconds, within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset<A: Clock, B: Clock> {
    within: Interval,
    clocks: PhantomData<(A, B)>,
}

impl<A: Clock, B: Clock> ClockOffset<A, B> {
    /// An offset that lies somewhere in `within`.
    #[must_use]
    pub const fn within(within: Interval) -> Self {
        Self {
            within,
            clocks: PhantomData,
        }
    }

    /// Its bounds in nanoseconds.
    #[must_use]
    pub const fn bounds(self) -> Interval {
        self.within
    }

    /// What both allow, or `None` where they contradict each other.
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        self.within.intersect(other.within).map(Self::within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_as_uncertain_as_both_ends_together() {
        let start = Stamp::<ProxyClock>::between(100, 110, Source::Kernel);
        let end = Stamp::<ProxyClock>::between(205, 200, Source::Queue);
        assert_eq!(end - start, Interval::between(90, 105));
        assert_eq!(start - end, -(end - start));
    }

    #[test]
    fn crossing_clocks_widens_by_the_offset() {
        let offset = ClockOffset::<ClientClock, ProxyClock>::within(Interval::between(990, 1010));
        let there = Stamp::<ClientClock>::at(5000, Source::Span);
        let here = there.on(offset);
        assert_eq!((here.lo(), here.hi()), (3990, 4010));
    }

    #[test]
    fn contradicting_intervals_have_nothing_in_common() {
        assert_eq!(
            Interval::between(1, 4).intersect(Interval::between(5, 6)),
            None
        );
        assert_eq!(
            Interval::between(1, 5).intersect(Interval::between(3, 9)),
            Some(Interval::between(3, 5))
        );
    }

    #[test]
    fn extreme_bounds_saturate_outwards() {
        let all = Interval::between(i64::MIN, i64::MAX);
        assert_eq!(
            all + Interval::exactly(1),
            Interval::between(i64::MIN + 1, i64::MAX)
        );
        assert_eq!((all - all), all);
        assert_eq!(all.width(), i64::MAX);
    }

    #[test]
    fn every_source_is_found_by_its_name() {
        for source in Source::ALL {
            assert_eq!(Source::from_name(source.name()), Some(source));
        }
    }
}
