//! How the clocks stand and how well each source of stamps sees.

use skewtap_core::clock::{ProxyClock, Source, Stamp};

/// The clocks and the sources of a simulated world. True time is the proxy's clock.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// How far the client's clock is ahead of the true time, in nanoseconds.
    pub client_ahead_ns: i64,
    /// How far the server's clock is ahead of the true time, in nanoseconds.
    pub server_ahead_ns: i64,
    /// Whether client and server are found in the proxy's network namespace.
    pub endpoints_here: bool,
    /// Whether packets are captured; otherwise receive stamps and write brackets are all there is.
    pub packets: bool,
    /// Half the width of a queue look-up's bracket, in nanoseconds.
    pub queue_doubt_ns: i64,
    /// Whether the client's process may be sampled.
    pub samples: bool,
}

impl World {
    /// One machine, exact clocks, every source at work.
    pub const PLAIN: Self = Self {
        client_ahead_ns: 0,
        server_ahead_ns: 0,
        endpoints_here: true,
        packets: true,
        queue_doubt_ns: 1_000_000,
        samples: true,
    };

    /// A byte that reached the proxy's machine at `ns`.
    pub(crate) fn arrival(&self, ns: i64) -> Stamp<ProxyClock> {
        if self.packets {
            Stamp::between(ns - 2_000, ns + 2_000, Source::Packet)
        } else {
            Stamp::between(ns - 10_000, ns + 10_000, Source::Kernel)
        }
    }

    /// A byte that left the proxy's machine at `ns`.
    pub(crate) fn departure(&self, ns: i64) -> Stamp<ProxyClock> {
        if self.packets {
            Stamp::between(ns - 2_000, ns + 2_000, Source::Packet)
        } else {
            Stamp::between(ns - 8_000, ns + 13_000, Source::WriteBracket)
        }
    }

    /// A read that look-ups of the receive queue saw happen at `ns`.
    pub(crate) fn read(&self, ns: i64) -> Stamp<ProxyClock> {
        // Not centred: the truth may be anywhere in the bracket.
        let doubt = self.queue_doubt_ns;
        Stamp::between(ns - doubt / 3, ns + 2 * doubt - doubt / 3, Source::Queue)
    }
}
