//! Where a connection was going before a rule of the kernel's redirected it.

#![expect(unsafe_code, reason = "a socket option without a safe library")]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

/// `SO_ORIGINAL_DST`, and `IP6T_SO_ORIGINAL_DST`, of the kernel's connection tracking.
const ORIGINAL_DESTINATION: libc::c_int = 80;

/// As many bytes as the longer of the two kinds of address has.
const ADDRESS_BYTES: usize = size_of::<libc::sockaddr_in6>();

/// Asks where a connection that was accepted here was going before it was redirected (`REDIRECT`
/// of iptables, `redirect` of nftables). Of one that was not redirected it is where it came, if
/// connections are tracked.
///
/// # Errors
/// What `getsockopt` says: [`io::ErrorKind::NotFound`] if the connection is not tracked, another
/// error if the kernel tracks none.
pub fn original_destination(fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    // A connection over IPv4 to an IPv6 socket is tracked as what it is.
    let v4 = ask(fd, libc::SOL_IP);
    v4.or_else(|why| {
        ask(fd, libc::SOL_IPV6).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => error,
            _ => why,
        })
    })
}

fn ask(fd: BorrowedFd<'_>, level: libc::c_int) -> io::Result<SocketAddr> {
    let mut bytes = [0_u8; ADDRESS_BYTES];
    let mut length = libc::socklen_t::try_from(bytes.len()).unwrap_or(0);
    // SAFETY: `bytes` is writable for `length` bytes, and the kernel writes no more
    // than that; any byte is a valid `u8`.
    let answer = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            ORIGINAL_DESTINATION,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    address(&bytes).ok_or_else(|| io::Error::other("an address of an unknown kind"))
}

/// Reads a `sockaddr_in` or a `sockaddr_in6`.
fn address(bytes: &[u8; ADDRESS_BYTES]) -> Option<SocketAddr> {
    let family = libc::c_int::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    match family {
        libc::AF_INET => {
            let ip: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
            Some(SocketAddr::from((Ipv4Addr::from(ip), port)))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
            let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
            let ip = Ipv6Addr::from(ip);
            Some(SocketAddrV6::new(ip, port, 0, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(family: libc::c_int, rest: &[u8]) -> [u8; ADDRESS_BYTES] {
        let mut bytes = [0; ADDRESS_BYTES];
        bytes[..2].copy_from_slice(&u16::try_from(family).unwrap().to_ne_bytes());
        bytes[2..2 + rest.len()].copy_from_slice(rest);
        bytes
    }

    #[test]
    fn addresses_of_both_kinds_are_read() {
        let four = bytes(libc::AF_INET, &[0x1f, 0x90, 192, 0, 2, 1]);
        assert_eq!(address(&four), Some("192.0.2.1:8080".parse().unwrap()));
        let mut rest = vec![0, 80, 0, 0, 0, 0];
        rest.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        let six = bytes(libc::AF_INET6, &rest);
        assert_eq!(address(&six), Some("[2001:db8::1]:80".parse().unwrap()));
        assert_eq!(address(&bytes(libc::AF_UNIX, &[])), None);
    }
}
