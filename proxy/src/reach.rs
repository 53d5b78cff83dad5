//! Making a connection to a server.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use skewtap_sockstamp::{enable_receive_stamps, realtime_ns};
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use crate::exchange_error::ExchangeError;
use crate::journal::{ConnectTimes, LegAddresses, ServerEnds};
use crate::listen::bound_unsent;
use crate::moment::Departure;
use crate::socket::Socket;
use crate::target::Target;
use crate::worker::Worker;

/// A connection that stands.
pub(crate) struct Reached {
    pub(crate) socket: Socket,
    pub(crate) ends: ServerEnds,
    pub(crate) times: ConnectTimes,
}

/// Connects to a server, for the client at `client`.
///
/// # Errors
/// The server cannot be reached, or this client may not be led there.
pub(crate) async fn reach(
    target: &Target,
    worker: &Worker,
    client: SocketAddr,
) -> Result<Reached, ExchangeError> {
    if let Some(path) = &target.unix {
        return reach_unix(path).await;
    }
    if let Some(packets) = &worker.packets {
        packets.add_port(target.port);
    }
    let addresses = resolve(target).await?;
    let client_is_local = client.ip().to_canonical().is_loopback();
    let guarded = !worker.router.is_upstream(target) && !client_is_local;
    if guarded && addresses.iter().copied().any(is_private_to_host) {
        return Err(ExchangeError::Forbidden);
    }
    reach_one(addresses, worker).await
}

async fn reach_unix(path: &Arc<Path>) -> Result<Reached, ExchangeError> {
    let connected = timed(UnixStream::connect(path)).await;
    let (stream, times) = connected.map_err(unreachable)?;
    Ok(Reached {
        socket: Socket::Unix(stream),
        ends: ServerEnds::Unix(Arc::clone(path)),
        times,
    })
}

async fn resolve(target: &Target) -> Result<Vec<SocketAddr>, ExchangeError> {
    let known = target.address.or_else(|| target.host.parse().ok());
    if let Some(address) = known {
        return Ok(vec![SocketAddr::new(address, target.port)]);
    }
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
    let found = found.map(Iterator::collect).and_then(|found: Vec<_>| {
        let none = || io::Error::new(io::ErrorKind::NotFound, "no address");
        if found.is_empty() {
            Err(none())
        } else {
            Ok(found)
        }
    });
    found.map_err(|source| ExchangeError::Name {
        host: target.host.clone(),
        source,
    })
}

/// Whether an address means this machine or its link, which only clients on this machine may be
/// led to.
fn is_private_to_host(address: SocketAddr) -> bool {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local() || ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified(),
    }
}

/// Tries the addresses in order, as they were given.
async fn reach_one(addresses: Vec<SocketAddr>, worker: &Worker) -> Result<Reached, ExchangeError> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        if worker.router.is_own(address) {
            return Err(ExchangeError::Loop);
        }
        let connected = connect(address, worker.config.kernel_stamps).await;
        let (stream, times) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                failure = error;
                continue;
            }
        };
        let local = stream.local_addr().map_err(ExchangeError::Unreachable)?;
        let peer = stream.peer_addr().map_err(ExchangeError::Unreachable)?;
        let ends = LegAddresses::new(local, peer);
        if worker.router.has_come_back(ends.local, ends.peer) {
            return Err(ExchangeError::Loop);
        }
        let own = worker.own.as_ref().map(|own| own.note(ends.local));
        return Ok(Reached {
            socket: Socket::Tcp(stream, own),
            ends: ServerEnds::Tcp(ends),
            times,
        });
    }
    Err(unreachable(failure))
}

fn unreachable(failure: io::Error) -> ExchangeError {
    if failure.kind() == io::ErrorKind::ConnectionRefused {
        ExchangeError::Refused(failure)
    } else {
        ExchangeError::Unreachable(failure)
    }
}

async fn connect(address: SocketAddr, stamps: bool) -> io::Result<(TcpStream, ConnectTimes)> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_nodelay(true)?;
    bound_unsent(SockRef::from(&socket));
    if stamps && let Err(error) = enable_receive_stamps(socket.as_fd()) {
        tracing::debug!(error = %error, "no receive stamps on the connection to the server");
    }
    timed(socket.connect(address)).await
}

/// Connects, with the clock before and after the system call and when the connection stood.
async fn timed<S>(
    connecting: impl Future<Output = io::Result<S>>,
) -> io::Result<(S, ConnectTimes)> {
    let mut connecting = pin!(connecting);
    let mut start = None;
    // The first poll makes the system call.
    let socket = poll_fn(|cx| {
        let before_ns = realtime_ns();
        let polled = connecting.as_mut().poll(cx);
        let after_ns = realtime_ns();
        start.get_or_insert(Departure {
            before_ns,
            after_ns,
        });
        polled
    })
    .await?;
    let connected_ns = realtime_ns();
    let at_once = Departure {
        before_ns: connected_ns,
        after_ns: connected_ns,
    };
    let times = ConnectTimes {
        start: start.unwrap_or(at_once),
        connected_ns,
    };
    Ok((socket, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_private_to_a_host_is_known_in_every_form() {
        for private in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "0.0.0.0:1",
            "169.254.169.254:80",
            "[::1]:1",
            "[::]:1",
            "[::ffff:127.0.0.1]:1",
            "[::ffff:169.254.169.254]:80",
            "[fe80::1]:1",
        ] {
            assert!(is_private_to_host(private.parse().unwrap()), "{private}");
        }
        for public in ["192.0.2.1:1", "10.0.0.1:1", "[2001:db8::1]:1"] {
            assert!(!is_private_to_host(public.parse().unwrap()), "{public}");
        }
    }
}
