//! When a byte arrived or left, as one read or one write can tell.

use skewtap_core::clock::{ProxyClock, Source, Stamp};

/// When a byte reached this machine. Times are nanoseconds of `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The kernel's stamp, where it gave one: earliest and latest.
    pub(crate) kernel: Option<(i64, i64)>,
    /// The clock after the read that returned the byte.
    pub(crate) user_ns: i64,
    /// The byte had not arrived by then.
    pub(crate) not_before_ns: i64,
}

impl Arrival {
    /// The kernel's stamp, if any, and the proxy's own reading of the clock.
    pub(crate) fn stamps(self) -> impl Iterator<Item = Stamp<ProxyClock>> {
        let kernel = self
            .kernel
            .map(|(lo, hi)| Stamp::between(lo, hi, Source::Kernel));
        // Beside a kernel stamp the reading shows how late the proxy was. Alone, it must tell
        // by itself when the byte can have come.
        let user = match kernel {
            Some(_) => Stamp::at(self.user_ns, Source::User),
            None => Stamp::between(self.not_before_ns, self.user_ns, Source::User),
        };
        kernel.into_iter().chain([user])
    }

    /// The latest it can have been.
    pub(crate) fn latest_ns(self) -> i64 {
        self.kernel.map_or(self.user_ns, |(_, hi)| hi)
    }
}

/// When a byte left: the clock before and after the write that took it, in nanoseconds of
/// `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) before_ns: i64,
    pub(crate) after_ns: i64,
}

impl Departure {
    /// The bracket as a stamp.
    pub(crate) fn stamp(self) -> Stamp<ProxyClock> {
        Stamp::between(self.before_ns, self.after_ns, Source::WriteBracket)
    }
}

/// One read of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// The kernel's stamp of the last byte of what it had merged.
    pub(crate) kernel_ns: Option<i64>,
    /// The clock just before the read.
    pub(crate) before_ns: i64,
    /// The clock just after the read.
    pub(crate) after_ns: i64,
    /// Whether it left nothing unread, as far as one read can tell.
    pub(crate) drained: bool,
    /// Whether its bytes could be read only when the last of them had come, as in a TLS record.
    pub(crate) together: bool,
}

/// What the kernel had counted of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Segments with payload that had arrived.
    pub(crate) segments: u32,
    /// Whether they had brought just the bytes that have been read.
    pub(crate) all_read: bool,
}

/// What the reads of one connection have told so far about when bytes can have arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalBounds {
    /// All bytes read later arrived after this.
    empty_at_ns: i64,
    /// Segments that brought the bytes read so far; `None` when the count was lost.
    segments: Option<u32>,
}

impl ArrivalBounds {
    /// A connection that was there at `now_ns` and of which nothing has been read.
    pub(crate) fn new(now_ns: i64) -> Self {
        Self {
            empty_at_ns: now_ns,
            segments: Some(0),
        }
    }

    /// No byte read from here on arrived before `ns`.
    pub(crate) fn nothing_before(&mut self, ns: i64) {
        self.empty_at_ns = self.empty_at_ns.max(ns);
    }

    /// When the end of the stream came that `read` found; the kernel does not stamp it.
    pub(crate) fn end_of_stream(&self, read: Read) -> Arrival {
        Arrival {
            kernel: None,
            user_ns: read.after_ns,
            not_before_ns: self.empty_at_ns,
        }
    }

    /// Takes a read, with what the kernel counted just after it if it was asked, and says what
    /// it tells of its bytes.
    pub(crate) fn read(&mut self, read: Read, counted: Option<Counted>) -> ReadTells {
        let single = match (self.segments, counted) {
            (Some(before), Some(now)) => now.segments.wrapping_sub(before) <= 1,
            _ => false,
        };
        let tells = ReadTells {
            read,
            not_before_ns: self.empty_at_ns,
            single,
        };
        self.segments = counted.filter(|now| now.all_read).map(|now| now.segments);
        if read.drained {
            self.empty_at_ns = read.before_ns;
        }
        tells
    }
}

/// What one read tells of when its bytes arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadTells {
    read: Read,
    not_before_ns: i64,
    /// One segment brought them all.
    single: bool,
}

impl ReadTells {
    /// When a byte that the read returned arrived; `last` if none followed it.
    ///
    /// The kernel stamps the end of what it has merged, so only the last byte, or every byte of
    /// a single segment, is known exactly.
    pub(crate) fn byte(self, last: bool) -> Arrival {
        let last = last || self.read.together;
        let exact = self.single || (last && self.read.drained);
        Arrival {
            kernel: self.read.kernel_ns.map(|ns| {
                (
                    if exact {
                        ns
                    } else {
                        self.not_before_ns.min(ns)
                    },
                    ns,
                )
            }),
            user_ns: self.read.after_ns,
            not_before_ns: self.not_before_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kernel_ns: i64, drained: bool) -> Read {
        Read {
            kernel_ns: Some(kernel_ns),
            before_ns: kernel_ns + 10,
            after_ns: kernel_ns + 12,
            drained,
            together: false,
        }
    }

    fn counted(segments: u32, all_read: bool) -> Option<Counted> {
        Some(Counted { segments, all_read })
    }

    #[test]
    fn a_segment_that_came_after_the_read_leaves_the_next_in_doubt() {
        let mut bounds = ArrivalBounds::new(0);
        let tells = bounds.read(read(100, true), counted(1, false));
        assert_eq!(tells.byte(false).kernel, Some((100, 100)));
        let tells = bounds.read(read(200, true), counted(1, true));
        assert_eq!(tells.byte(false).kernel, Some((110, 200)));
    }

    #[test]
    fn every_byte_of_a_single_segment_is_known_exactly() {
        let mut bounds = ArrivalBounds::new(0);
        let tells = bounds.read(read(100, true), counted(1, true));
        assert_eq!(tells.byte(false).kernel, Some((100, 100)));
    }

    #[test]
    fn of_merged_segments_only_the_last_byte_is_known_exactly() {
        let mut bounds = ArrivalBounds::new(0);
        bounds.read(read(100, true), counted(1, true));
        let tells = bounds.read(read(200, true), counted(4, true));
        assert_eq!(tells.byte(false).kernel, Some((110, 200)));
        assert_eq!(tells.byte(true).kernel, Some((200, 200)));
    }

    #[test]
    fn a_read_that_left_bytes_behind_proves_nothing_of_the_next() {
        let mut bounds = ArrivalBounds::new(0);
        bounds.read(read(100, false), None);
        let tells = bounds.read(read(100, true), counted(9, true));
        assert_eq!(tells.byte(false).kernel, Some((0, 100)));
    }

    #[test]
    fn without_a_kernel_stamp_the_reading_covers_all_it_can_have_been() {
        let mut bounds = ArrivalBounds::new(50);
        let tells = bounds.read(
            Read {
                kernel_ns: None,
                before_ns: 90,
                after_ns: 92,
                drained: true,
                together: false,
            },
            counted(1, true),
        );
        let stamps: Vec<_> = tells.byte(true).stamps().collect();
        assert_eq!(stamps, [Stamp::between(50, 92, Source::User)]);
    }
}
