//! The whole crate at work: on a real capture file, and live on the loopback device.

mod libcurl_capture;
#[cfg(feature = "live")]
mod live_loopback;
