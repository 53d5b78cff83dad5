//! Opening a capture, its filter, and what went wrong.

use std::collections::BTreeSet;

use pcap::{Active, Capture, Device, Linktype, Precision};

use super::super::{ANY_DEVICE, LiveError};

/// Enough for the link header (up to 20 bytes), an IP header with options (60) and a TCP header
/// with options (60). In immediate mode the kernel's buffer has slots of this size.
const SNAPLEN: i32 = 160;

/// The kernel's buffer, in bytes.
const BUFFER: i32 = 8 * 1024 * 1024;

/// Opens a device so that every packet is handed over at once.
pub(super) fn activate(device: &str) -> Result<Capture<Active>, LiveError> {
    let opened = Capture::from_device(device).and_then(|capture| {
        capture
            .promisc(false)
            .snaplen(SNAPLEN)
            .buffer_size(BUFFER)
            .precision(Precision::Nano)
            .immediate_mode(true)
            .open()
    });
    let mut capture = opened.map_err(|source| why(device, source))?;
    if device == ANY_DEVICE && capture.set_datalink(Linktype::LINUX_SLL2).is_err() {
        // Before libpcap 1.10 there is only the first version, which does as well.
        tracing::debug!("libpcap has no second version of cooked capture");
    }
    Ok(capture)
}

/// Lets only TCP to and from `ports` pass.
pub(super) fn set_filter(
    capture: &mut Capture<Active>,
    device: &str,
    ports: &BTreeSet<u16>,
) -> Result<(), LiveError> {
    let ports: Vec<String> = ports.iter().map(|port| format!("port {port}")).collect();
    let mut filter = format!("tcp and ({})", ports.join(" or "));
    if capture.get_datalink() == Linktype::LINUX_SLL2 {
        // The kernel taps a loopback packet twice, going out and coming in; libpcap hides the
        // first, but it would still cost its sender time and the buffer a slot. Interface 1 is
        // the loopback device of every network namespace.
        filter.push_str(" and not (outbound and ifindex 1)");
    }
    capture
        .filter(&filter, true)
        .map_err(|source| failed(device, source))
}

pub(super) fn failed(device: &str, source: pcap::Error) -> LiveError {
    LiveError::Libpcap {
        device: device.to_owned(),
        source: Box::new(source),
    }
}

/// Why a device cannot be opened. libpcap only says so in words, so the two reasons a user can do
/// something about are looked into here.
fn why(device: &str, source: pcap::Error) -> LiveError {
    let device_name = device.to_owned();
    if !permitted() {
        return LiveError::NotPermitted {
            device: device_name,
        };
    }
    match Device::list() {
        Ok(all) if all.iter().all(|known| known.name != device) => LiveError::NoSuchDevice {
            device: device_name,
        },
        _ => failed(device, source),
    }
}

/// Whether this thread may open a packet socket, found by trying.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    use socket2::{Domain, Socket, Type};
    // Without a protocol the socket receives nothing.
    match Socket::new(Domain::PACKET, Type::DGRAM, None) {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::PermissionDenied,
    }
}

/// Elsewhere, libpcap's own words must do.
#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    true
}
