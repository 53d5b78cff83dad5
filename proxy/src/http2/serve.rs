//! A client's HTTP/2 connection, from its first stream to its last.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{Request, Uri, request};
use hyper_util::rt::TokioIo;
use skewtap_core::exchange::Outcome;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::servers::Servers;
use super::stream;
use crate::exchange_error::ExchangeError;
use crate::journal::{Leg, Multiplexed, RequestFacts};
use crate::patience::{Doing, Late, Patience};
use crate::stamped_io::{StampedIo, Witness};
use crate::target::Target;
use crate::worker::Worker;
use crate::{downstream, trace_context};

/// The time in which streams taken back are counted.
const RESETS_WITHIN: Duration = Duration::from_secs(1);

/// Longest time for what is left to be said once a client's connection is over.
const FAREWELL: Duration = Duration::from_secs(1);

/// What all streams of one client share.
pub(super) struct Client {
    pub(super) worker: Rc<Worker>,
    pub(super) journal: Rc<RefCell<Multiplexed>>,
    pub(super) servers: Rc<Servers>,
    /// The one server, where the client named that before HTTP began.
    destination: Option<Target>,
}

impl Client {
    /// Notes what ends an exchange, if nothing did before.
    pub(super) fn fault(&self, stream: u32, fault: Outcome) {
        self.journal.borrow_mut().fault(stream, fault);
    }

    /// Where a request goes. On a stream even a plain path comes with a whole URL, so it is
    /// never taken for one to be forwarded.
    ///
    /// # Errors
    /// The reason why the proxy does not serve it.
    pub(super) fn target(&self, head: &request::Parts) -> Result<Target, ExchangeError> {
        let root = || PathAndQuery::from_static("/");
        let path = head.uri.path_and_query().cloned().unwrap_or_else(root);
        let mut plain = Request::new(());
        *plain.method_mut() = head.method.clone();
        *plain.uri_mut() = Uri::from(path);
        let host = crate::exchange_layer::authority(&head.uri, &head.headers);
        if let Some(host) = host {
            plain.headers_mut().insert(HOST, host);
        }
        let router = &self.worker.router;
        router.route(&mut plain, self.destination.as_ref())
    }
}

type Http = Connection<TokioIo<StampedIo>, Bytes>;

/// Serves a client that speaks HTTP/2 until either side closes. `stop` lets the streams under way
/// end and closes the connection after them.
pub(crate) async fn serve(worker: Rc<Worker>, client: downstream::Client, stop: CancellationToken) {
    let downstream::Client {
        transport,
        addresses,
        accepted_ns,
        tls,
        destination,
    } = client;
    let journal = Multiplexed::new(Rc::clone(&worker), addresses, accepted_ns, tls);
    let journal = Rc::new(RefCell::new(journal));
    let closing = Closing(Rc::clone(&journal));
    let witness = Witness::Several(Rc::clone(&journal), Leg::Client);
    let io = StampedIo::new(transport, witness, Rc::clone(&worker.scratch));
    let client = Rc::new(Client {
        servers: Rc::new(Servers::new(Rc::clone(&worker), Rc::clone(&journal))),
        journal,
        destination,
        worker,
    });
    let config = &client.worker.config;
    let handshake = super::server_builder(config).handshake(TokioIo::new(io));
    let made = tokio::time::timeout(config.head_timeout, handshake);
    match stop.run_until_cancelled(made).await {
        Some(Ok(Ok(http))) => drive(&client, http, &stop).await,
        Some(Ok(Err(error))) => broke(&client, &error),
        Some(Err(_)) | None => {}
    }
    client.servers.close(FAREWELL).await;
    drop(closing);
}

fn broke(client: &Client, error: &h2::Error) {
    client.worker.metrics.stream_connection_error(error);
    tracing::debug!(error = %error, "connection from a client ended");
}

/// Accepts streams until the connection is over, then lets those end that can.
async fn drive(client: &Rc<Client>, mut http: Http, stop: &CancellationToken) {
    let mut streams = JoinSet::new();
    let mut watch = Watch::new(client, stop);
    loop {
        let event = poll_fn(|cx| {
            if let Poll::Ready(accepted) = http.poll_accept(cx) {
                return Poll::Ready(Event::of(accepted));
            }
            // Those that have ended leave nothing worth keeping.
            while let Poll::Ready(Some(_)) = streams.poll_join_next(cx) {}
            watch.poll(cx, client)
        });
        match event.await {
            Event::Stream(stream) => accept(client, &mut streams, *stream),
            Event::Ends => http.graceful_shutdown(),
            Event::Over(ended) => {
                if let Err(error) = ended {
                    broke(client, &error);
                }
                break;
            }
            Event::Abuse(what) => {
                tracing::debug!(what, "connection from a client is closed");
                http.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                let told = poll_fn(|cx| http.poll_closed(cx));
                if tokio::time::timeout(FAREWELL, told).await.is_err() {
                    tracing::debug!("client not told why its connection is closed");
                }
                break;
            }
        }
    }
    drop(http);
    // Without their connection they can only tell their servers.
    let ended = async { while streams.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, ended).await.is_err() {
        tracing::debug!("streams without a connection are dropped");
    }
}

fn accept(client: &Rc<Client>, streams: &mut JoinSet<()>, (request, respond): Stream) {
    let (mut head, body) = request.into_parts();
    let number = respond.stream_id().as_u32();
    let mut journal = client.journal.borrow_mut();
    let facts = RequestFacts::of(&head.method, &head.uri, head.version, &head.headers);
    journal.begin(number, facts);
    if let Some(context) = trace_context::read_or_add(&mut head.headers) {
        journal.note_trace(number, context);
    }
    drop(journal);
    let request = Request::from_parts(head, body);
    streams.spawn_local(stream::serve(Rc::clone(client), request, respond));
}

type Stream = (Request<RecvStream>, SendResponse<Bytes>);

/// What happens on a client's connection.
enum Event {
    /// The client opened a stream.
    Stream(Box<Stream>),
    /// The connection is to end with the streams under way.
    Ends,
    /// It is over.
    Over(Result<(), h2::Error>),
    /// The client does what nobody needs to do.
    Abuse(&'static str),
}

impl Event {
    fn of(accepted: Option<Result<Stream, h2::Error>>) -> Self {
        match accepted {
            Some(Ok(stream)) => Self::Stream(Box::new(stream)),
            Some(Err(error)) => Self::Over(Err(error)),
            None => Self::Over(Ok(())),
        }
    }
}

/// What is looked at beside the streams themselves.
struct Watch<'a> {
    stopped: Pin<Box<dyn Future<Output = ()> + 'a>>,
    server_closed: Pin<Box<dyn Future<Output = ()> + 'a>>,
    patience: Patience,
    resets: ResetRate,
    /// The client has been told that its connection ends.
    ending: bool,
}

impl<'a> Watch<'a> {
    fn new(client: &'a Client, stop: &'a CancellationToken) -> Self {
        Self {
            stopped: Box::pin(stop.cancelled()),
            server_closed: Box::pin(client.servers.closed.notified()),
            patience: Patience::default(),
            resets: ResetRate::new(),
            ending: false,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>, client: &Client) -> Poll<Event> {
        if !self.ending
            && (self.stopped.as_mut().poll(cx).is_ready()
                || self.server_closed.as_mut().poll(cx).is_ready())
        {
            self.ending = true;
            return Poll::Ready(Event::Ends);
        }
        let (doing, taken_back) = {
            let journal = client.journal.borrow();
            let doing = Doing {
                head_is_open: journal.head_is_open(),
                is_idle: journal.is_idle(),
                served: journal.begun(),
            };
            (doing, journal.taken_back())
        };
        let config = &client.worker.config;
        if self.resets.exceeds(taken_back, config.max_resets) {
            return Poll::Ready(Event::Abuse("it takes back too many streams"));
        }
        match self.patience.poll(cx, config, doing) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Late::Head) => Poll::Ready(Event::Abuse("its head takes too long")),
            Poll::Ready(Late::Idle) if self.ending => Poll::Ready(Event::Over(Ok(()))),
            Poll::Ready(Late::Idle) => {
                self.ending = true;
                Poll::Ready(Event::Ends)
            }
        }
    }
}

/// How many streams a client has taken back of late.
struct ResetRate {
    since: Instant,
    before: u64,
    latest: u64,
}

impl ResetRate {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            before: 0,
            latest: 0,
        }
    }

    /// Whether `all` so far are too many: more than `most` within the time they are counted for.
    fn exceeds(&mut self, all: u64, most: u64) -> bool {
        if all == self.latest {
            return false;
        }
        if self.since.elapsed() >= RESETS_WITHIN {
            self.since = Instant::now();
            self.before = self.latest;
        }
        self.latest = all;
        all.saturating_sub(self.before) > most
    }
}

/// Closes what is open of the journal, also when the task is dropped.
struct Closing(Rc<RefCell<Multiplexed>>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.borrow_mut().close();
    }
}
