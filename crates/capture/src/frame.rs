//! One captured frame: its time, its link type and as many of its bytes as were kept.

/// A frame as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it passed the tap, in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// How its first bytes are laid out.
    pub link: LinkType,
    /// Its length on the wire, in bytes.
    pub wire_length: u32,
    /// Its first bytes; fewer than `wire_length` if it was cut for the capture.
    pub bytes: &'a [u8],
}

/// What comes before the network layer in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// Linux cooked capture, as on the device `any`.
    LinuxSll,
    /// Linux cooked capture, second version.
    LinuxSll2,
    /// Four bytes of protocol family, as on the loopback device of BSD and macOS.
    Loopback,
    /// Nothing: the frame is an IP packet.
    RawIp,
    /// Any other, by its number in capture files.
    Other(i32),
}

impl LinkType {
    /// The link type with this number in capture files (`LINKTYPE_*`) or in libpcap (`DLT_*`).
    #[must_use]
    pub const fn from_number(number: i32) -> Self {
        match number {
            1 => Self::Ethernet,
            113 => Self::LinuxSll,
            276 => Self::LinuxSll2,
            0 | 108 => Self::Loopback,
            // Raw IP has another number in libpcap on most systems (12) and on OpenBSD (14).
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            other => Self::Other(other),
        }
    }
}

/// Why a frame has no readable TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The link type is not one that can be read.
    #[error("link type {0} is not supported")]
    Link(i32),
    /// It carries something other than TCP over IP; nothing is wrong with it.
    #[error("frame carries no TCP")]
    NotTcp,
    /// It is part of a fragmented IP packet.
    #[error("IP packet is fragmented")]
    Fragment,
    /// Too few of its bytes were kept to read the headers.
    #[error("frame is cut off inside its headers")]
    CutOff,
    /// Its headers contradict themselves.
    #[error("malformed packet headers")]
    Malformed,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Most VLAN tags in front of a packet.
const VLAN_DEPTH: usize = 4;

impl<'a> Frame<'a> {
    /// The IP packet in the frame, as far as it was kept.
    pub(crate) fn ip_packet(&self) -> Result<&'a [u8], FrameError> {
        let (ether_type, rest) = match self.link {
            LinkType::Ethernet => ether_type_after::<12>(self.bytes)?,
            LinkType::LinuxSll => ether_type_after::<14>(self.bytes)?,
            LinkType::LinuxSll2 => {
                let (ether_type, rest) = ether_type_after::<0>(self.bytes)?;
                (ether_type, rest.get(18..).ok_or(FrameError::CutOff)?)
            }
            // The family's numbers differ between systems; the packet tells its version itself.
            LinkType::Loopback => return self.bytes.get(4..).ok_or(FrameError::CutOff),
            LinkType::RawIp => return Ok(self.bytes),
            LinkType::Other(number) => return Err(FrameError::Link(number)),
        };
        below_vlan_tags(ether_type, rest)
    }
}

fn below_vlan_tags(mut ether_type: u16, mut rest: &[u8]) -> Result<&[u8], FrameError> {
    for _ in 0..VLAN_DEPTH {
        if !VLAN_TAGS.contains(&ether_type) {
            break;
        }
        (ether_type, rest) = ether_type_after::<2>(rest)?;
    }
    match ether_type {
        IPV4 | IPV6 => Ok(rest),
        _ => Err(FrameError::NotTcp),
    }
}

/// The two bytes after the first `SKIP`, and all that follows them.
fn ether_type_after<const SKIP: usize>(bytes: &[u8]) -> Result<(u16, &[u8]), FrameError> {
    bytes
        .get(SKIP..)
        .and_then(<[u8]>::split_first_chunk)
        .map(|(two, rest)| (u16::from_be_bytes(*two), rest))
        .ok_or(FrameError::CutOff)
}
