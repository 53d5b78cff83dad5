//! One TCP segment as a captured frame shows it.

#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use etherparse::err::{ip, tcp};
use etherparse::{IpNumber, LaxIpSlice, TcpHeaderSlice};

use crate::frame::{Frame, FrameError};

/// A TCP segment and when it passed the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// When it passed the tap, in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// Sequence number of its first byte, or of its `SYN`.
    pub seq: u32,
    /// The next byte the sender expects; `None` without the flag that makes it valid.
    pub ack: Option<u32>,
    /// Whether it opens its direction.
    pub syn: bool,
    /// Whether it closes its direction.
    pub fin: bool,
    /// Whether it breaks the connection off.
    pub rst: bool,
    /// Bytes that the sender can take, before window scaling.
    pub window: u16,
    /// Bytes of payload on the wire, whether or not the capture kept them.
    pub payload_length: u32,
}

impl TcpSegment {
    /// Reads the headers of `frame`.
    ///
    /// # Errors
    /// When the frame carries no TCP, only a fragment of it, or too little of it was kept.
    pub fn parse(frame: &Frame<'_>) -> Result<Self, FrameError> {
        let packet = frame.ip_packet()?;
        let (ip, stopped) = LaxIpSlice::from_slice(packet).map_err(|error| match error {
            ip::LaxHeaderSliceError::Len(_) => FrameError::CutOff,
            ip::LaxHeaderSliceError::Content(_) => FrameError::Malformed,
        })?;
        if stopped.is_some() {
            return Err(FrameError::CutOff);
        }
        if ip.payload_ip_number() != IpNumber::TCP {
            return Err(FrameError::NotTcp);
        }
        if ip.is_fragmenting_payload() {
            return Err(FrameError::Fragment);
        }
        let header =
            TcpHeaderSlice::from_slice(ip.payload().payload).map_err(|error| match error {
                tcp::HeaderSliceError::Len(_) => FrameError::CutOff,
                tcp::HeaderSliceError::Content(_) => FrameError::Malformed,
            })?;
        let payload_length = ip_payload_length(&ip, frame, packet)?
            .checked_sub(length(header.slice())?)
            .ok_or(FrameError::Malformed)?;
        Ok(Self {
            time_ns: frame.time_ns,
            from: SocketAddr::new(ip.source_addr(), header.source_port()),
            to: SocketAddr::new(ip.destination_addr(), header.destination_port()),
            seq: header.sequence_number(),
            ack: header.ack().then(|| header.acknowledgment_number()),
            syn: header.syn(),
            fin: header.fin(),
            rst: header.rst(),
            window: header.window_size(),
            payload_length,
        })
    }
}

/// Bytes after the IP headers on the wire. The IP header tells, however much was captured; it
/// says zero for a packet too long for its field, as segmentation offload makes them.
fn ip_payload_length(
    ip: &LaxIpSlice<'_>,
    frame: &Frame<'_>,
    packet: &[u8],
) -> Result<u32, FrameError> {
    let (declared, headers) = match ip {
        LaxIpSlice::Ipv4(ip) => {
            let options = ip.extensions().auth.map_or(&[][..], |auth| auth.slice());
            let headers = length(ip.header().slice())?.checked_add(length(options)?);
            (u32::from(ip.header().total_len()), headers)
        }
        LaxIpSlice::Ipv6(ip) => {
            let fixed = length(ip.header().slice())?;
            let headers = length(ip.extensions().slice())?.checked_add(fixed);
            let declared = match ip.header().payload_length() {
                0 => 0,
                payload => u32::from(payload) + fixed,
            };
            (declared, headers)
        }
    };
    let total = if declared == 0 {
        let link = length(frame.bytes)?.checked_sub(length(packet)?);
        link.and_then(|link| frame.wire_length.checked_sub(link))
    } else {
        Some(declared)
    };
    total
        .zip(headers)
        .and_then(|(total, headers)| total.checked_sub(headers))
        .ok_or(FrameError::Malformed)
}

fn length(bytes: &[u8]) -> Result<u32, FrameError> {
    u32::try_from(bytes.len()).map_err(|_| FrameError::Malformed)
}
