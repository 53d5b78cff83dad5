//! The kernel's `tcp_info`, read by offset.
//!
//! The layout is part of the kernel's interface and grows only at its end. It
//! is read from bytes and not through a C struct, because the same bytes come
//! from `getsockopt` and from sock_diag, and because the struct in the C
//! libraries lags behind the kernel.

const RTT: usize = 68;
const TOTAL_RETRANSMITS: usize = 100;
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;
const NOT_SENT: usize = 144;
const MIN_RTT: usize = 148;
const DATA_SEGMENTS_IN: usize = 152;
const DATA_SEGMENTS_OUT: usize = 156;
const WINDOW_LIMITED: usize = 176;

/// The kernel's figures of one TCP connection. Counters run from the start of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smallest round-trip time seen, in nanoseconds (a resolution of 1 µs); `None` before the first.
    pub min_rtt_ns: Option<i64>,
    /// Smoothed round-trip time in nanoseconds.
    pub rtt_ns: i64,
    /// Segments sent again.
    pub total_retransmits: u32,
    /// Time in which the peer's receive window held this end back, in nanoseconds. It advances
    /// in steps of the kernel's tick (4 ms, say).
    pub window_limited_ns: i64,
    /// Segments with payload that arrived.
    pub data_segments_in: u32,
    /// Segments with payload that were sent.
    pub data_segments_out: u32,
    /// Payload bytes that arrived. The end of the stream counts as one more.
    pub bytes_received: u64,
    /// Bytes that the peer's kernel acknowledged. On the side that connected the handshake
    /// counts as one, and so does the end of the stream on either side.
    pub bytes_acked: u64,
    /// Bytes written by the application that have not left yet.
    pub not_sent_bytes: u32,
}

impl TcpInfo {
    /// Reads the bytes of the kernel's `tcp_info`, as `getsockopt(TCP_INFO)` and sock_diag's
    /// `INET_DIAG_INFO` give them; `None` when they are too few.
    #[must_use]
    pub fn from_kernel_bytes(bytes: &[u8]) -> Option<Self> {
        let unknown = u32::MAX;
        let min_rtt = u32_at(bytes, MIN_RTT)?;
        Some(Self {
            min_rtt_ns: (min_rtt != unknown).then(|| microseconds(u64::from(min_rtt))),
            rtt_ns: microseconds(u64::from(u32_at(bytes, RTT)?)),
            total_retransmits: u32_at(bytes, TOTAL_RETRANSMITS)?,
            window_limited_ns: microseconds(u64_at(bytes, WINDOW_LIMITED)?),
            data_segments_in: u32_at(bytes, DATA_SEGMENTS_IN)?,
            data_segments_out: u32_at(bytes, DATA_SEGMENTS_OUT)?,
            bytes_received: u64_at(bytes, BYTES_RECEIVED)?,
            bytes_acked: u64_at(bytes, BYTES_ACKED)?,
            not_sent_bytes: u32_at(bytes, NOT_SENT)?,
        })
    }
}

fn microseconds(us: u64) -> i64 {
    i64::try_from(us.saturating_mul(1_000)).unwrap_or(i64::MAX)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL_BYTES: usize = 256;

    #[test]
    fn too_few_bytes_are_refused_whatever_their_number() {
        let bytes = [0xff; KERNEL_BYTES];
        let least = WINDOW_LIMITED + 8;
        for length in 0..KERNEL_BYTES {
            let read = TcpInfo::from_kernel_bytes(&bytes[..length]);
            assert_eq!(read.is_some(), length >= least, "{length} bytes");
        }
    }

    #[test]
    fn a_round_trip_time_that_the_kernel_does_not_know_is_none() {
        let mut bytes = [0; KERNEL_BYTES];
        bytes[MIN_RTT..MIN_RTT + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
        let info = TcpInfo::from_kernel_bytes(&bytes).unwrap();
        assert_eq!(info.min_rtt_ns, None);
        bytes[MIN_RTT..MIN_RTT + 4].copy_from_slice(&7_u32.to_ne_bytes());
        let info = TcpInfo::from_kernel_bytes(&bytes).unwrap();
        assert_eq!(info.min_rtt_ns, Some(7_000));
    }
}
