//! A port that passes bytes on to a collector which is running already.
//!
//! `NO_PROXY` cannot name ports in every language, so a collector at `127.0.0.1` could be kept
//! from the proxy only together with every server there. It is given an address of its own.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// Listens on a free port of `host`, and passes on what comes to `to` until the runtime ends.
///
/// # Errors
/// No port can be had there.
pub(super) async fn start(host: IpAddr, to: &Url) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((host, 0)).await?;
    let address = listener.local_addr()?;
    let to = to.clone();
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((client, _)) => drop(tokio::spawn(pass_on(client, to.clone()))),
                Err(error) => {
                    tracing::warn!(%error, "a connection to the collector was not taken");
                    tokio::task::yield_now().await;
                }
            }
        }
    });
    Ok(address)
}

async fn pass_on(mut client: TcpStream, to: Url) {
    let passed = async {
        let addresses = to.socket_addrs(|| None)?;
        let mut collector = TcpStream::connect(addresses.as_slice()).await?;
        copy_bidirectional(&mut client, &mut collector).await
    };
    if let Err(error) = passed.await {
        tracing::warn!(%error, collector = %to, "spans were not passed on");
    }
}
