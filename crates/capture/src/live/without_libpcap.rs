//! The capture of a build without libpcap: it cannot be opened.

use std::convert::Infallible;

use super::{CaptureStats, LiveError};
use crate::tcp_segment::TcpSegment;

/// An open capture; there is none in this build.
#[derive(Debug)]
pub struct LiveCapture {
    never: Infallible,
}

/// Controls a capture from another thread; there is none in this build.
#[derive(Clone, Debug)]
pub struct CaptureHandle {
    never: Infallible,
}

impl LiveCapture {
    /// Fails.
    ///
    /// # Errors
    /// Always [`LiveError::NotBuilt`].
    pub fn open(ports: &[u16]) -> Result<Self, LiveError> {
        Self::open_on(super::ANY_DEVICE, ports)
    }

    /// Fails.
    ///
    /// # Errors
    /// Always [`LiveError::NotBuilt`].
    pub fn open_on(_device: &str, _ports: &[u16]) -> Result<Self, LiveError> {
        Err(LiveError::NotBuilt)
    }

    /// A handle for other threads.
    #[must_use]
    pub fn handle(&self) -> CaptureHandle {
        match self.never {}
    }

    /// Hands on every segment until stopped.
    ///
    /// # Errors
    /// Cannot be called.
    pub fn run(self, _on_segment: impl FnMut(TcpSegment)) -> Result<CaptureStats, LiveError> {
        match self.never {}
    }
}

impl CaptureHandle {
    /// Listens to one more port.
    ///
    /// # Errors
    /// Cannot be called.
    pub fn add_port(&self, _port: u16) -> Result<(), LiveError> {
        match self.never {}
    }

    /// Ends the capture.
    pub fn stop(&self) {
        match self.never {}
    }

    /// What the capture has taken in and lost so far.
    #[must_use]
    pub fn stats(&self) -> CaptureStats {
        match self.never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_says_what_is_missing() {
        let error = LiveCapture::open(&[80]).unwrap_err();
        assert!(matches!(error, LiveError::NotBuilt));
        assert!(error.to_string().contains("without libpcap"));
    }
}
