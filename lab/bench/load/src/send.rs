//! Sending batches, each as soon as the one before on its stream is acknowledged.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::batch::Batch;

/// Flow-control windows that do not hold up answers, in bytes.
const WINDOW: u32 = 8 << 20;

/// How long to wait after a refusal.
const PAUSE: Duration = Duration::from_millis(20);

/// Why sending ended early.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// How much to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The receiver.
    pub(crate) to: SocketAddr,
    /// Requests under way at once.
    pub(crate) streams: u64,
    /// How long.
    pub(crate) lasting: Duration,
    /// Requests at most.
    pub(crate) batches: u64,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Spans acknowledged.
    pub(crate) acknowledged: u64,
    /// Spans refused; each batch that is refused counts again.
    pub(crate) refused: u64,
    /// Spans that were under way when the connection broke, likewise.
    pub(crate) broken: u64,
    /// Bytes of the acknowledged batches.
    pub(crate) bytes: u64,
    /// From the first request to the last answer.
    pub(crate) seconds: f64,
}

impl Sent {
    /// Adds what another stream sent.
    pub(crate) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.broken += other.broken;
        self.bytes += other.bytes;
    }
}

/// Sends until the time is over or the last batch is acknowledged.
///
/// # Errors
/// When the connection cannot be made or breaks.
pub(crate) async fn run(load: &Load, batch: &Batch) -> Result<Sent, Failure> {
    let local = LocalSet::new();
    let next = Rc::new(Cell::new(first_number()?));
    let last = next.get().saturating_add(load.batches);
    let start = Instant::now();
    let streams: Vec<_> = (0..load.streams)
        .map(|_| {
            let (load, batch, next) = (*load, batch.clone(), Rc::clone(&next));
            local.spawn_local(async move { stream(load, &batch, &next, last, start).await })
        })
        .collect();
    let gathered = local.run_until(async move {
        let mut all = Sent::default();
        for stream in streams {
            all.add(&stream.await??);
        }
        Ok::<_, Failure>(all)
    });
    let mut sent = gathered.await?;
    sent.seconds = start.elapsed().as_secs_f64();
    Ok(sent)
}

/// A start for the numbers of batches that no earlier run of this program has come to.
///
/// # Errors
/// When the clock is before 1970.
pub(crate) fn first_number() -> Result<u64, Failure> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(since.as_micros())? & 0xfff_ffff_ffff)
}

async fn stream(
    load: Load,
    batch: &Batch,
    next: &Cell<u64>,
    last: u64,
    start: Instant,
) -> Result<Sent, Failure> {
    let mut sent = Sent::default();
    let mut requests = connect(load.to).await?;
    while start.elapsed() < load.lasting || load.batches < u64::MAX {
        let number = next.get();
        if number >= last {
            break;
        }
        next.set(number + 1);
        let message = batch.message(number);
        let length = message.len() as u64;
        loop {
            requests = requests.ready().await?;
            let request = request(&mut requests, load.to, message.clone());
            if request.await? {
                sent.acknowledged += batch.spans();
                sent.bytes += length;
                break;
            }
            sent.refused += batch.spans();
            tokio::time::sleep(PAUSE).await;
            if load.batches == u64::MAX {
                break;
            }
        }
    }
    Ok(sent)
}

/// A connection to send requests on.
///
/// # Errors
/// When there is none to be had.
pub(crate) async fn connect(to: SocketAddr) -> Result<SendRequest<Bytes>, Failure> {
    let socket = TcpStream::connect(to).await?;
    socket.set_nodelay(true)?;
    let (requests, connection) = h2::client::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake(socket)
        .await?;
    // Its end is seen by the requests on it.
    tokio::task::spawn_local(async move { drop(connection.await) });
    Ok(requests)
}

/// Sends one message; whether it was acknowledged whole.
///
/// # Errors
/// When the connection breaks.
pub(crate) async fn request(
    requests: &mut SendRequest<Bytes>,
    to: SocketAddr,
    mut message: Bytes,
) -> Result<bool, Failure> {
    let path = "opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let head = Request::post(format!("http://{to}/{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let (answer, mut body) = requests.send_request(head, false)?;
    while !message.is_empty() {
        body.reserve_capacity(message.len());
        let room = match poll_fn(|cx| body.poll_capacity(cx)).await {
            Some(room) => room?.min(message.len()),
            None => break,
        };
        body.send_data(message.split_to(room), message.is_empty())?;
    }
    let (head, mut content) = answer.await?.into_parts();
    let mut rejected = 0;
    while let Some(piece) = content.data().await {
        let piece = piece?;
        content.flow_control().release_capacity(piece.len())?;
        rejected += piece.len();
    }
    let trailers = content.trailers().await?;
    let status = |headers: &HeaderMap| Some(headers.get("grpc-status")? == "0");
    let acknowledged = trailers.as_ref().and_then(status);
    let acknowledged = acknowledged.or_else(|| status(&head.headers));
    // An answer longer than its own head tells of spans that were rejected.
    Ok(acknowledged == Some(true) && rejected <= 5)
}
