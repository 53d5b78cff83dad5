//! Segments as they pass this machine, by libpcap.
//!
//! Built without the feature `live`, all of this is still here, but opening a
//! capture fails with [`LiveError::NotBuilt`].

#[cfg(feature = "live")]
mod with_libpcap;
#[cfg(not(feature = "live"))]
mod without_libpcap;

#[cfg(feature = "live")]
pub use with_libpcap::{CaptureHandle, LiveCapture};
#[cfg(not(feature = "live"))]
pub use without_libpcap::{CaptureHandle, LiveCapture};

/// Most ports that one capture listens to.
pub const PORTS_CAP: usize = 128;

/// The device that stands for all devices together.
pub const ANY_DEVICE: &str = "any";

/// What a capture has taken in and lost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureStats {
    /// Packets that passed the filter, as the kernel counts them.
    pub received: u64,
    /// Packets that the kernel dropped because they were not fetched in time.
    pub dropped: u64,
    /// Packets that the device dropped before the kernel saw them.
    pub dropped_by_interface: u64,
    /// Segments handed on.
    pub segments: u64,
    /// Packets without a readable TCP segment.
    pub unreadable: u64,
    /// Times the filter was replaced; a packet may be missed each time.
    pub filter_changes: u64,
}

/// Why packets cannot be captured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The program was built without the feature `live`.
    #[error("built without libpcap: build with the feature `live` to capture packets")]
    NotBuilt,
    /// The process lacks the privilege.
    #[error(
        "capturing packets on device {device} is not permitted: it takes CAP_NET_RAW, which root \
         has and which `setcap cap_net_raw=ep` grants to a program's file"
    )]
    NotPermitted {
        /// The device.
        device: String,
    },
    /// There is no such device.
    #[error("no network device {device} to capture packets on")]
    NoSuchDevice {
        /// The device.
        device: String,
    },
    /// No port was given, or too many.
    #[error("a capture takes 1 to {PORTS_CAP} ports, not {given}")]
    Ports {
        /// Number of distinct ports given.
        given: usize,
    },
    /// libpcap failed.
    #[error("libpcap failed on device {device}")]
    Libpcap {
        /// The device.
        device: String,
        /// What libpcap said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
