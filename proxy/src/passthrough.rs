//! Connections that were redirected here and are not HTTP in the clear: carried to where they were
//! going, unseen.
//!
//! Each has one record, as a tunnel has that was asked for, but of no request and no response. A
//! failure is not answered, since nobody knows in which language: the client's connection is reset.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::ServerConfig;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::downstream::{self, Client};
use crate::exchange_error::ExchangeError;
use crate::journal::{Carried, Closing, HttpVersion, Journal};
use crate::preface;
use crate::target::Target;
use crate::tls::Offer;
use crate::transport::Transport;
use crate::tunnel::{self, End};
use crate::upstream::{Dialled, connect_to};
use crate::worker::Worker;

/// How long a client may say nothing before its server is asked whether that speaks first. Longer
/// than it takes to send again what was lost at first.
const SILENCE: Duration = Duration::from_millis(300);

/// Who speaks first on a connection.
enum First {
    Client,
    /// The server, which may also have been out of reach.
    Server(Result<Dialled, ExchangeError>),
    /// Neither, for as long as a client may be idle.
    Nobody,
}

/// Waits for a client's first bytes, and gives the client back when they are there. Where its
/// server speaks first, the connection is carried instead.
pub(crate) async fn unless_server_speaks(
    worker: &Rc<Worker>,
    client: Client,
    stop: &CancellationToken,
) -> Option<Client> {
    match stop.run_until_cancelled(first(worker, &client)).await {
        Some(First::Client) => Some(client),
        Some(First::Server(dialled)) => {
            let journal = begin(worker, &client, Carried::Unknown);
            let closing = Closing(Rc::clone(&journal));
            carry_to(worker, &journal, client.transport, dialled).await;
            drop(closing);
            None
        }
        Some(First::Nobody) | None => None,
    }
}

async fn first(worker: &Worker, client: &Client) -> First {
    if timeout(SILENCE, speaks(&client.transport)).await.is_ok() {
        return First::Client;
    }
    let server_speaks = async {
        let dialled = dial(worker, client).await;
        if let Ok(server) = &dialled {
            speaks(&server.transport).await;
        }
        dialled
    };
    tokio::select! {
        biased;
        dialled = server_speaks => First::Server(dialled),
        () = speaks(&client.transport) => First::Client,
        () = sleep(worker.config.idle_timeout) => First::Nobody,
    }
}

/// Waits until something has come, be it the end. What is wrong with the socket shows when it is
/// read.
async fn speaks(transport: &Transport) {
    poll_fn(|cx| transport.poll_peek(cx, &mut [0]).map(drop)).await;
}

/// Serves a client that begins a handshake of TLS: opens that in the server's place if it may, else
/// carries it.
pub(crate) async fn serve_tls(worker: Rc<Worker>, client: Client, stop: CancellationToken) {
    let named = preface::server_name(&client.transport, (&worker.config, &worker.scratch));
    let Some(name) = stop.run_until_cancelled(named).await else {
        return;
    };
    match opened(&worker, &client, name.as_deref()) {
        Ok(None) => carry(worker, client, Carried::Tls(name)).await,
        Ok(Some((target, config))) => {
            let client = Client {
                destination: Some(target),
                ..client
            };
            let nothing_yet = (config, Bytes::new(), 0);
            downstream::intercept(worker, client, nothing_yet, stop).await;
        }
        Err(error) => {
            tracing::debug!(error = %error, "no TLS with a client");
            worker.metrics.handshake_failed();
            client.transport.reset_on_close();
        }
    }
}

/// Where what is inside the client's TLS goes, and what to open that with, if it may be opened.
fn opened(
    worker: &Worker,
    client: &Client,
    name: Option<&str>,
) -> Result<Option<(Target, Arc<ServerConfig>)>, ExchangeError> {
    let (Some(authority), Some(meant)) = (&worker.authority, &client.destination) else {
        return Ok(None);
    };
    let host = name.unwrap_or(&meant.host);
    if !authority.covers(host) {
        return Ok(None);
    }
    let config = authority.server_config(host)?;
    let target = Target {
        address: Some(client.addresses.meant.ip()),
        ..Target::tcp(host, meant.port, true)
    };
    Ok(Some((target, config)))
}

/// Carries bytes both ways, to where the client meant to go.
pub(crate) async fn carry(worker: Rc<Worker>, client: Client, what: Carried) {
    let journal = begin(&worker, &client, what);
    let closing = Closing(Rc::clone(&journal));
    let dialled = dial(&worker, &client).await;
    carry_to(&worker, &journal, client.transport, dialled).await;
    drop(closing);
}

fn begin(worker: &Rc<Worker>, client: &Client, what: Carried) -> Rc<RefCell<Journal>> {
    let (ends, accepted_ns) = (client.addresses, client.accepted_ns);
    let mut journal = Journal::new(Rc::clone(worker), ends, accepted_ns, None);
    journal.carries(what);
    Rc::new(RefCell::new(journal))
}

async fn dial(worker: &Worker, client: &Client) -> Result<Dialled, ExchangeError> {
    let target = client.destination.as_ref();
    let target = target.ok_or(ExchangeError::NoUpstream)?;
    connect_to(worker, target, client.addresses.peer, Offer::Http1).await
}

async fn carry_to(
    worker: &Worker,
    journal: &RefCell<Journal>,
    client: Transport,
    dialled: Result<Dialled, ExchangeError>,
) {
    match dialled {
        Ok(server) => {
            let connected = server.connected;
            journal
                .borrow_mut()
                .connected(connected, HttpVersion::Http1);
            journal.borrow_mut().sent_up();
            let [client, server] = [client, server.transport].map(|transport| End {
                transport,
                early: Bytes::new(),
            });
            tunnel::run(journal, &worker.scratch, client, server).await;
        }
        Err(error) => {
            tracing::debug!(reason = error.reason(), "not carried");
            journal.borrow_mut().answered_here(error.outcome());
            client.reset_on_close();
        }
    }
}
