//! The capture itself: a libpcap handle read by one thread and controlled by others.

mod open;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pcap::{Active, BreakLoop, Capture, Linktype, Packet, Stat};
use tracing::debug;

use super::{ANY_DEVICE, CaptureStats, LiveError, PORTS_CAP};
use crate::frame::{Frame, LinkType};
use crate::tcp_segment::TcpSegment;

/// How old the kernel's figures may be while packets come in.
const STATS_EVERY: Duration = Duration::from_millis(1);

/// How long packets gather once the first has come. A reader that sleeps costs those who send them
/// nothing; without the pause they would pay for waking it with nearly every packet.
const GATHERING: Duration = Duration::from_millis(1);

/// A read that takes longer than this has waited for its packet.
const WAITED: Duration = Duration::from_micros(50);

/// An open capture: packets that pass are kept from here on, until [`LiveCapture::run`] reads them.
pub struct LiveCapture {
    capture: Capture<Active>,
    device: String,
    link: Linktype,
    shared: Arc<Shared>,
}

/// Controls a capture from any thread.
#[derive(Clone)]
pub struct CaptureHandle {
    shared: Arc<Shared>,
}

/// What the reading thread and the handles have in common.
struct Shared {
    wake: BreakLoop,
    stop: AtomicBool,
    ports: Mutex<BTreeSet<u16>>,
    /// Whether `ports` has grown beyond the filter in force.
    ports_changed: AtomicBool,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    received: AtomicU64,
    dropped: AtomicU64,
    dropped_by_interface: AtomicU64,
    segments: AtomicU64,
    unreadable: AtomicU64,
    filter_changes: AtomicU64,
}

impl LiveCapture {
    /// Begins to capture TCP to and from `ports` on all devices.
    ///
    /// # Errors
    /// When it is not permitted, there are no or too many ports, or libpcap fails.
    pub fn open(ports: &[u16]) -> Result<Self, LiveError> {
        Self::open_on(ANY_DEVICE, ports)
    }

    /// Begins to capture TCP to and from `ports` on one device.
    ///
    /// # Errors
    /// Like [`LiveCapture::open`], and when there is no such device.
    pub fn open_on(device: &str, ports: &[u16]) -> Result<Self, LiveError> {
        let ports: BTreeSet<u16> = ports.iter().copied().collect();
        if ports.is_empty() || ports.len() > PORTS_CAP {
            return Err(LiveError::Ports { given: ports.len() });
        }
        let mut capture = open::activate(device)?;
        open::set_filter(&mut capture, device, &ports)?;
        Ok(Self {
            link: capture.get_datalink(),
            device: device.to_owned(),
            shared: Arc::new(Shared {
                wake: capture.breakloop_handle(),
                stop: AtomicBool::new(false),
                ports: Mutex::new(ports),
                ports_changed: AtomicBool::new(false),
                counts: Counts::default(),
            }),
            capture,
        })
    }

    /// A handle for other threads.
    #[must_use]
    pub fn handle(&self) -> CaptureHandle {
        CaptureHandle {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Hands on every segment within about a millisecond, on the calling thread, until
    /// [`CaptureHandle::stop`]. What `on_segment` takes in time delays the next one; packets are
    /// dropped, and counted, only when it falls behind by thousands.
    ///
    /// # Errors
    /// When libpcap fails, as when the device goes away.
    pub fn run(
        mut self,
        mut on_segment: impl FnMut(TcpSegment),
    ) -> Result<CaptureStats, LiveError> {
        let mut seen = Stat {
            received: 0,
            dropped: 0,
            if_dropped: 0,
        };
        let mut counted_at = Instant::now();
        loop {
            if self.shared.stop.load(Relaxed) {
                break;
            }
            if self.shared.ports_changed.swap(false, Relaxed) {
                self.extend_filter()?;
            }
            let began = Instant::now();
            match self.capture.next_packet() {
                Ok(packet) => {
                    let waited = began.elapsed() > WAITED;
                    let counts = &self.shared.counts;
                    counts.hand_on(&packet, self.link, &mut on_segment);
                    if waited {
                        std::thread::sleep(GATHERING);
                    }
                }
                // Woken to look at what was asked for.
                Err(pcap::Error::NoMorePackets | pcap::Error::TimeoutExpired) => {}
                Err(source) => return Err(open::failed(&self.device, source)),
            }
            if counted_at.elapsed() >= STATS_EVERY {
                self.count(&mut seen)?;
                counted_at = Instant::now();
            }
        }
        self.count(&mut seen)?;
        Ok(self.shared.stats())
    }

    fn extend_filter(&mut self) -> Result<(), LiveError> {
        let ports = self.shared.ports().clone();
        open::set_filter(&mut self.capture, &self.device, &ports)?;
        self.shared.counts.filter_changes.fetch_add(1, Relaxed);
        debug!(ports = ports.len(), "capture filter extended");
        Ok(())
    }

    fn count(&mut self, seen: &mut Stat) -> Result<(), LiveError> {
        let new = self
            .capture
            .stats()
            .map_err(|source| open::failed(&self.device, source))?;
        self.shared.counts.advance(seen, &new);
        *seen = new;
        Ok(())
    }
}

impl CaptureHandle {
    /// Listens to one more port, from about now on. While the filter is replaced, for some
    /// microseconds, packets of all ports may be missed; the index answers `None` for those.
    ///
    /// # Errors
    /// When there are too many ports.
    pub fn add_port(&self, port: u16) -> Result<(), LiveError> {
        let mut ports = self.shared.ports();
        if ports.contains(&port) {
            return Ok(());
        }
        if ports.len() >= PORTS_CAP {
            return Err(LiveError::Ports {
                given: ports.len() + 1,
            });
        }
        ports.insert(port);
        drop(ports);
        self.shared.ports_changed.store(true, Relaxed);
        self.shared.wake.breakloop();
        Ok(())
    }

    /// Ends [`LiveCapture::run`], also if it has not begun yet.
    pub fn stop(&self) {
        self.shared.stop.store(true, Relaxed);
        self.shared.wake.breakloop();
    }

    /// What the capture has taken in and lost so far.
    #[must_use]
    pub fn stats(&self) -> CaptureStats {
        self.shared.stats()
    }
}

impl Shared {
    fn ports(&self) -> std::sync::MutexGuard<'_, BTreeSet<u16>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stats(&self) -> CaptureStats {
        CaptureStats {
            received: self.counts.received.load(Relaxed),
            dropped: self.counts.dropped.load(Relaxed),
            dropped_by_interface: self.counts.dropped_by_interface.load(Relaxed),
            segments: self.counts.segments.load(Relaxed),
            unreadable: self.counts.unreadable.load(Relaxed),
            filter_changes: self.counts.filter_changes.load(Relaxed),
        }
    }
}

impl Counts {
    fn hand_on(
        &self,
        packet: &Packet<'_>,
        link: Linktype,
        on_segment: &mut impl FnMut(TcpSegment),
    ) {
        let segment = time_ns(packet).and_then(|time_ns| {
            TcpSegment::parse(&Frame {
                time_ns,
                link: LinkType::from_number(link.0),
                wire_length: packet.header.len,
                bytes: packet.data,
            })
            .ok()
        });
        match segment {
            Some(segment) => {
                self.segments.fetch_add(1, Relaxed);
                on_segment(segment);
            }
            None => {
                self.unreadable.fetch_add(1, Relaxed);
            }
        }
    }

    /// Adds what libpcap has counted since `seen`; its counters wrap around.
    fn advance(&self, seen: &Stat, new: &Stat) {
        let since = |old: u32, new: u32| u64::from(new.wrapping_sub(old));
        self.received
            .fetch_add(since(seen.received, new.received), Relaxed);
        self.dropped
            .fetch_add(since(seen.dropped, new.dropped), Relaxed);
        self.dropped_by_interface
            .fetch_add(since(seen.if_dropped, new.if_dropped), Relaxed);
    }
}

/// The packet's time in nanoseconds since the Unix epoch; at nanosecond precision, the field for
/// microseconds holds nanoseconds.
fn time_ns(packet: &Packet<'_>) -> Option<i64> {
    let seconds = i128::from(packet.header.ts.tv_sec);
    let fraction = i128::from(packet.header.ts.tv_usec);
    i64::try_from(seconds * 1_000_000_000 + fraction).ok()
}
