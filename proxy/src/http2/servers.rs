//! The connections to servers that belong to one client's HTTP/2 connection.
//!
//! A server that speaks HTTP/2 gets one, as the client would have made; one that speaks HTTP/1
//! gets one for each stream that is open at the time. None is ever used for another client.

use std::cell::RefCell;
use std::future::Future;
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::sync::{Mutex, Notify};
use tokio::task::{AbortHandle, JoinSet};

use super::message_server::Idle;
use super::stream_server;
use crate::exchange_error::ExchangeError;
use crate::journal::{HttpVersion, Leg, Multiplexed};
use crate::stamped_io::{StampedIo, Witness};
use crate::target::Target;
use crate::tls::Offer;
use crate::upstream::{self, Dialled};
use crate::worker::Worker;

/// The servers of one client's connection.
pub(super) struct Servers {
    worker: Rc<Worker>,
    pub(super) journal: Rc<RefCell<Multiplexed>>,
    places: RefCell<Vec<Rc<Place>>>,
    idle: RefCell<Vec<Idle>>,
    drivers: RefCell<JoinSet<()>>,
    /// Told when a server closes what the client's connection stands for.
    pub(super) closed: Notify,
}

/// A server, and what is known of it; held while it is found out.
struct Place {
    target: Target,
    known: Mutex<Known>,
}

#[derive(Clone)]
enum Known {
    Nothing,
    /// It speaks HTTP/2, on this connection.
    Streams(StreamServer),
    /// It speaks HTTP/1.
    Messages,
}

/// A connection of HTTP/2.
#[derive(Clone)]
pub(super) struct StreamServer {
    /// What the journal knows it by.
    pub(super) number: u64,
    pub(super) sender: SendRequest<Bytes>,
}

impl Servers {
    pub(super) fn new(worker: Rc<Worker>, journal: Rc<RefCell<Multiplexed>>) -> Self {
        Self {
            worker,
            journal,
            places: RefCell::default(),
            idle: RefCell::default(),
            drivers: RefCell::default(),
            closed: Notify::new(),
        }
    }

    /// The connection for one more stream to `target`, once the server has room for it; `None`
    /// if the server speaks HTTP/1.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn stream_server(
        self: &Rc<Self>,
        target: &Target,
    ) -> Result<Option<StreamServer>, ExchangeError> {
        let place = self.place(target);
        let mut retried = false;
        loop {
            let mut known = place.known.lock().await;
            if matches!(*known, Known::Nothing) {
                *known = self.dial(target).await?;
            }
            let Known::Streams(server) = known.clone() else {
                return Ok(None);
            };
            drop(known);
            match server.sender.ready().await {
                Ok(sender) => {
                    let number = server.number;
                    return Ok(Some(StreamServer { number, sender }));
                }
                Err(error) if retried => return Err(ExchangeError::from_h2(error)),
                Err(error) => tracing::debug!(error = %error, "server takes no more streams"),
            }
            retried = true;
            let mut known = place.known.lock().await;
            if matches!(&*known, Known::Streams(now) if now.number == server.number) {
                *known = Known::Nothing;
            }
        }
    }

    /// A connection for one exchange of HTTP/1 with `target`; and whether it is new.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn message_server(
        self: &Rc<Self>,
        target: &Target,
    ) -> Result<(Idle, bool), ExchangeError> {
        while let Some(mut idle) = self.take_idle(target) {
            if idle.sender.ready().await.is_ok() {
                return Ok((idle, false));
            }
        }
        let dialled = self.connect(target, Offer::Http1).await?;
        Ok((self.begin_messages(target, dialled)?, true))
    }

    /// Keeps a connection for the next stream.
    pub(super) fn keep(&self, idle: Idle) {
        self.idle.borrow_mut().push(idle);
    }

    /// Ends all connections, within `allowed` in good order.
    pub(super) async fn close(&self, allowed: Duration) {
        self.places.borrow_mut().clear();
        self.idle.borrow_mut().clear();
        let mut drivers = self.drivers.take();
        let ended = async { while drivers.join_next().await.is_some() {} };
        if tokio::time::timeout(allowed, ended).await.is_err() {
            tracing::debug!("a server did not take the end of its connection");
        }
    }

    fn place(&self, target: &Target) -> Rc<Place> {
        let mut places = self.places.borrow_mut();
        if let Some(place) = places.iter().find(|place| place.target == *target) {
            return Rc::clone(place);
        }
        let place = Rc::new(Place {
            target: target.clone(),
            known: Mutex::new(Known::Nothing),
        });
        places.push(Rc::clone(&place));
        place
    }

    fn take_idle(&self, target: &Target) -> Option<Idle> {
        let mut idle = self.idle.borrow_mut();
        let latest = idle.iter().rposition(|idle| idle.target == *target)?;
        Some(idle.remove(latest))
    }

    async fn dial(self: &Rc<Self>, target: &Target) -> Result<Known, ExchangeError> {
        let wanted = self.worker.config.upstream_http;
        let offer = upstream::offer_to(target, wanted, HttpVersion::Http2);
        if offer == Offer::Http1 {
            return Ok(Known::Messages);
        }
        let dialled = self.connect(target, offer).await?;
        match dialled.version {
            HttpVersion::Http1 => {
                let idle = self.begin_messages(target, dialled)?;
                self.keep(idle);
                Ok(Known::Messages)
            }
            HttpVersion::Http2 => self.begin_streams(dialled).await.map(Known::Streams),
        }
    }

    async fn connect(&self, target: &Target, offer: Offer) -> Result<Dialled, ExchangeError> {
        let client = self.journal.borrow().client();
        upstream::connect_to(&self.worker, target, client, offer).await
    }

    async fn begin_streams(
        self: &Rc<Self>,
        dialled: Dialled,
    ) -> Result<StreamServer, ExchangeError> {
        let (number, io) = self.stamped(dialled);
        let (sender, http) = stream_server::handshake(&self.worker.config, io).await?;
        let closed = Rc::downgrade(self);
        self.drive(number, async move {
            if let Err(error) = http.await {
                tracing::debug!(error = %error, "connection to a server ended");
            }
            if let Some(servers) = closed.upgrade() {
                servers.closed.notify_one();
            }
        });
        Ok(StreamServer { number, sender })
    }

    fn begin_messages(
        self: &Rc<Self>,
        target: &Target,
        dialled: Dialled,
    ) -> Result<Idle, ExchangeError> {
        let (number, io) = self.stamped(dialled);
        let (sender, http) = upstream::handshake(&self.worker.config, io)?;
        let driver = self.drive(number, async move {
            if let Err(error) = http.await {
                tracing::debug!(error = %error, "connection to a server ended");
            }
        });
        Ok(Idle {
            number,
            target: target.clone(),
            sender,
            driver,
        })
    }

    fn stamped(&self, dialled: Dialled) -> (u64, StampedIo) {
        let mut journal = self.journal.borrow_mut();
        let number = journal.connected(dialled.connected, dialled.version);
        let witness = Witness::Several(Rc::clone(&self.journal), Leg::Server(number));
        let scratch = Rc::clone(&self.worker.scratch);
        (number, StampedIo::new(dialled.transport, witness, scratch))
    }

    fn drive(
        self: &Rc<Self>,
        number: u64,
        http: impl Future<Output = ()> + 'static,
    ) -> AbortHandle {
        let gone = Gone {
            servers: Rc::downgrade(self),
            number,
        };
        let mut drivers = self.drivers.borrow_mut();
        // Those that have ended leave nothing worth keeping.
        while drivers.try_join_next().is_some() {}
        drivers.spawn_local(async move {
            http.await;
            drop(gone);
        })
    }
}

/// Tells the journal of a connection's end, also when its task is dropped.
struct Gone {
    servers: Weak<Servers>,
    number: u64,
}

impl Drop for Gone {
    fn drop(&mut self) {
        if let Some(servers) = self.servers.upgrade() {
            servers.journal.borrow_mut().server_gone(self.number);
        }
    }
}
