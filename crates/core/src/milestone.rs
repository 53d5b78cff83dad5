//! The named instants of an exchange that the proxy's machine can stamp.

use std::fmt;

use crate::clock::{ProxyClock, Source, Stamp};

/// The prefix of the attributes that hold stamps; the names of the milestone and of the source follow.
macro_rules! stamp_prefix {
    () => {
        "skewtap.stamp."
    };
}

pub(crate) const STAMP_PREFIX: &str = stamp_prefix!();

macro_rules! milestones {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// A named instant of an exchange, in the order a simple exchange meets them.
        ///
        /// `Down` is the leg between client and proxy, `Up` the one between proxy and server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Milestone {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Milestone {
            /// Every milestone, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name used in attributes, JSON and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The inverse of [`Milestone::name`].
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }

            /// The key of the attribute that holds the stamp that `source` gave: written out
            /// here, so that nobody has to put it together for each stamp of each exchange.
            #[inline]
            pub(crate) const fn stamp_key(self, source: Source) -> &'static str {
                match self { $(Self::$variant => stamp_key!($name, source),)+ }
            }
        }
    };
}

/// As [`Source::name`] has the names.
macro_rules! stamp_key {
    ($milestone:literal, $source:ident) => {
        match $source {
            Source::Packet => concat!(stamp_prefix!(), $milestone, ".packet"),
            Source::Kernel => concat!(stamp_prefix!(), $milestone, ".kernel"),
            Source::WriteBracket => concat!(stamp_prefix!(), $milestone, ".write-bracket"),
            Source::Queue => concat!(stamp_prefix!(), $milestone, ".queue"),
            Source::User => concat!(stamp_prefix!(), $milestone, ".user"),
            Source::Span => concat!(stamp_prefix!(), $milestone, ".span"),
        }
    };
}

milestones! {
    /// The client's connection to the proxy stands.
    DownConnected = "down.connected",
    /// The TLS handshake with the client was complete.
    DownTlsDone = "down.tls_done",
    /// First byte of the request reached the proxy's machine.
    DownRequestFirst = "down.request.first",
    /// Last byte of the request head reached the proxy's machine.
    DownRequestHead = "down.request.head",
    /// Last byte of the request reached the proxy's machine.
    DownRequestLast = "down.request.last",
    /// The proxy began to connect to the server.
    UpConnectStart = "up.connect.start",
    /// The proxy's connection to the server stands.
    UpConnected = "up.connected",
    /// The TLS handshake with the server was complete.
    UpTlsDone = "up.tls_done",
    /// First byte of the request left the proxy.
    UpRequestFirst = "up.request.first",
    /// Last byte of the request head left the proxy.
    UpRequestHead = "up.request.head",
    /// Last byte of the request left the proxy.
    UpRequestLast = "up.request.last",
    /// The server's application accepted the connection.
    ServerAccepted = "server.accepted",
    /// The server's application read the request.
    ServerPickedUp = "server.picked_up",
    /// The server's interim `100 Continue` arrived.
    UpContinue = "up.continue",
    /// First byte of the final response arrived from the server.
    UpResponseFirst = "up.response.first",
    /// Last byte of the response head arrived from the server.
    UpResponseHead = "up.response.head",
    /// Last byte of the response arrived from the server.
    UpResponseLast = "up.response.last",
    /// The server closed its side of the connection.
    UpFin = "up.fin",
    /// The interim `100 Continue` left for the client.
    DownContinue = "down.continue",
    /// First byte of the final response left for the client.
    DownResponseFirst = "down.response.first",
    /// Last byte of the response head left for the client.
    DownResponseHead = "down.response.head",
    /// Last byte of the response left for the client.
    DownResponseLast = "down.response.last",
    /// First byte for the inside of a tunnel came from the client.
    DownTunnelFirst = "down.tunnel.first",
    /// Last byte for the inside of a tunnel came from the client.
    DownTunnelLast = "down.tunnel.last",
    /// First byte for the inside of a tunnel came from the server.
    UpTunnelFirst = "up.tunnel.first",
    /// Last byte for the inside of a tunnel came from the server.
    UpTunnelLast = "up.tunnel.last",
    /// The client's kernel acknowledged the last byte of the response.
    ClientAcked = "client.acked",
    /// The client's application read the response its kernel already held.
    ClientPickedUp = "client.picked_up",
    /// The next byte or the end of stream came from the client: it had read the response by then.
    ClientNextActivity = "client.next_activity",
}

impl fmt::Display for Milestone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The stamps taken of one exchange: any number of sources for each milestone, one stamp each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Milestones {
    /// Sorted by milestone, then source, so that equal records are equal values.
    stamps: Vec<(Milestone, Stamp<ProxyClock>)>,
}

impl Milestones {
    /// None yet, with room for `stamps`.
    #[must_use]
    pub fn with_capacity(stamps: usize) -> Self {
        Self {
            stamps: Vec::with_capacity(stamps),
        }
    }

    /// Notes a stamp; a second one of the same milestone and source replaces the first. It costs
    /// least where stamps come in their order.
    #[inline]
    pub fn note(&mut self, milestone: Milestone, stamp: Stamp<ProxyClock>) {
        let key = |(m, s): &(Milestone, Stamp<ProxyClock>)| (*m, s.source());
        let new = (milestone, stamp.source());
        if self.stamps.last().is_none_or(|last| key(last) < new) {
            self.stamps.push((milestone, stamp));
            return;
        }
        match self.stamps.binary_search_by_key(&new, key) {
            Ok(at) => {
                if let Some(slot) = self.stamps.get_mut(at) {
                    *slot = (milestone, stamp);
                }
            }
            Err(at) => self.stamps.insert(at, (milestone, stamp)),
        }
    }

    /// The stamp of the most trustworthy source that saw `milestone`.
    #[must_use]
    pub fn best(&self, milestone: Milestone) -> Option<Stamp<ProxyClock>> {
        self.stamps
            .iter()
            .find(|(m, _)| *m == milestone)
            .map(|(_, stamp)| *stamp)
    }

    /// What one source says of `milestone`.
    #[must_use]
    pub fn from_source(&self, milestone: Milestone, source: Source) -> Option<Stamp<ProxyClock>> {
        self.iter()
            .find(|(m, s)| *m == milestone && s.source() == source)
            .map(|(_, s)| s)
    }

    /// The earliest and the latest that any stamp says; `None` where there is none.
    #[must_use]
    pub fn bounds(&self) -> Option<(i64, i64)> {
        let each = self.iter().map(|(_, stamp)| (stamp.lo(), stamp.hi()));
        each.reduce(|(lo, hi), (other_lo, other_hi)| (lo.min(other_lo), hi.max(other_hi)))
    }

    /// All stamps, by milestone, then from the most to the least trustworthy source.
    pub fn iter(&self) -> impl Iterator<Item = (Milestone, Stamp<ProxyClock>)> + '_ {
        self.stamps.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_milestone_is_found_by_its_name() {
        for milestone in Milestone::ALL {
            assert_eq!(Milestone::from_name(milestone.name()), Some(*milestone));
        }
        assert_eq!(Milestone::from_name("down.nothing"), None);
    }

    #[test]
    fn the_key_of_a_stamp_is_made_of_the_names() {
        for milestone in Milestone::ALL {
            for source in Source::ALL {
                let expected = format!("skewtap.stamp.{milestone}.{source}");
                assert_eq!(milestone.stamp_key(source), expected);
            }
        }
    }

    #[test]
    fn the_bounds_are_the_earliest_and_the_latest() {
        let mut milestones = Milestones::default();
        assert_eq!(milestones.bounds(), None);
        milestones.note(Milestone::UpFin, Stamp::between(5, 9, Source::Packet));
        milestones.note(Milestone::UpConnected, Stamp::between(7, 12, Source::User));
        milestones.note(Milestone::DownConnected, Stamp::at(6, Source::Kernel));
        assert_eq!(milestones.bounds(), Some((5, 12)));
    }

    #[test]
    fn the_most_trustworthy_source_wins_whatever_the_order() {
        let mut milestones = Milestones::default();
        milestones.note(Milestone::UpResponseFirst, Stamp::at(30, Source::User));
        milestones.note(Milestone::UpResponseFirst, Stamp::at(10, Source::Packet));
        milestones.note(Milestone::UpResponseFirst, Stamp::at(20, Source::Kernel));
        assert_eq!(
            milestones.best(Milestone::UpResponseFirst),
            Some(Stamp::at(10, Source::Packet))
        );
        assert_eq!(
            milestones.from_source(Milestone::UpResponseFirst, Source::User),
            Some(Stamp::at(30, Source::User))
        );
        assert_eq!(milestones.best(Milestone::UpResponseLast), None);
    }

    #[test]
    fn a_second_stamp_of_one_source_replaces_the_first() {
        let mut milestones = Milestones::default();
        milestones.note(Milestone::UpFin, Stamp::at(1, Source::Packet));
        milestones.note(Milestone::UpFin, Stamp::at(2, Source::Packet));
        assert_eq!(milestones.iter().count(), 1);
        assert_eq!(
            milestones.best(Milestone::UpFin),
            Some(Stamp::at(2, Source::Packet))
        );
    }
}
