//! Sending as exporters do that must not lose anything: every request is sent again, over a new
//! connection if need be, until it is acknowledged.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::task::LocalSet;

use crate::batch::Batch;
use crate::send::{self, Failure, Sent};

/// How long to wait before the next try.
const PAUSE: Duration = Duration::from_millis(50);

/// How long to try the same request.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How much to send, and how fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The receiver.
    pub(crate) to: SocketAddr,
    /// Requests under way at once.
    pub(crate) streams: u64,
    /// How long, but for what it takes to have everything acknowledged.
    pub(crate) lasting: Duration,
    /// Spans per second, over all streams.
    pub(crate) rate: u64,
    /// How long after the clients' spans the servers' spans are sent.
    pub(crate) apart: Duration,
}

/// Sends `sides`: first the one, then, apart from it, the other, with the same ids.
///
/// # Errors
/// When a request is not acknowledged however often it is sent.
pub(crate) async fn run(load: &Load, sides: &[Batch; 2]) -> Result<Sent, Failure> {
    let start = Instant::now();
    let next = Rc::new(Cell::new(0));
    let first_number = send::first_number()?;
    let local = LocalSet::new();
    let streams: Vec<_> = (0..load.streams)
        .map(|_| {
            let stream = Stream {
                load: *load,
                sides: sides.clone(),
                next: Rc::clone(&next),
                first_number,
                start,
                connection: None,
                sent: Sent::default(),
            };
            local.spawn_local(stream.run())
        })
        .collect();
    let mut all = local
        .run_until(async move {
            let mut all = Sent::default();
            for stream in streams {
                all.add(&stream.await??);
            }
            Ok::<_, Failure>(all)
        })
        .await?;
    all.seconds = start.elapsed().as_secs_f64();
    Ok(all)
}

struct Stream {
    load: Load,
    sides: [Batch; 2],
    /// Requests begun by all streams.
    next: Rc<Cell<u64>>,
    first_number: u64,
    start: Instant,
    connection: Option<SendRequest<Bytes>>,
    sent: Sent,
}

impl Stream {
    async fn run(mut self) -> Result<Sent, Failure> {
        // Numbers whose second side is still to be sent, and when.
        let mut halves: VecDeque<(Instant, u64)> = VecDeque::new();
        loop {
            let place = self.next.get();
            self.next.set(place + 1);
            self.wait_for(place).await;
            let over = self.start.elapsed() >= self.load.lasting;
            match halves.front() {
                Some((due, number)) if over || *due <= Instant::now() => {
                    let number = *number;
                    halves.pop_front();
                    self.send(1, number).await?;
                }
                None if over => return Ok(self.sent),
                _ => {
                    let number = self.first_number + place;
                    self.send(0, number).await?;
                    halves.push_back((Instant::now() + self.load.apart, number));
                }
            }
        }
    }

    /// Waits until request number `place` of all streams is due.
    async fn wait_for(&self, place: u64) {
        let [batch, _] = &self.sides;
        let spans = u32::try_from(place * batch.spans()).unwrap_or(u32::MAX);
        let due = Duration::from_secs(1) * spans / u32::try_from(self.load.rate).unwrap_or(1);
        let due = tokio::time::Instant::from_std(self.start + due);
        tokio::time::sleep_until(due).await;
    }

    /// Sends one side of batch `number` until it is acknowledged.
    async fn send(&mut self, side: usize, number: u64) -> Result<(), Failure> {
        let Some(batch) = self.sides.get(side) else {
            return Ok(());
        };
        let (message, spans) = (batch.message(number), batch.spans());
        let until = Instant::now() + PATIENCE;
        loop {
            match self.try_once(message.clone()).await {
                Ok(true) => {
                    self.sent.acknowledged += spans;
                    self.sent.bytes += message.len() as u64;
                    return Ok(());
                }
                Ok(false) => self.sent.refused += spans,
                Err(error) => {
                    self.connection = None;
                    self.sent.broken += spans;
                    if Instant::now() > until {
                        return Err(error);
                    }
                }
            }
            if Instant::now() > until {
                return Err(format!("a request was refused for {PATIENCE:?}").into());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_once(&mut self, message: Bytes) -> Result<bool, Failure> {
        let requests = match self.connection.take() {
            Some(requests) => requests,
            None => send::connect(self.load.to).await?,
        };
        let mut requests = requests.ready().await?;
        let answer = send::request(&mut requests, self.load.to, message);
        let acknowledged = tokio::time::timeout(ANSWER_WITHIN, answer).await??;
        self.connection = Some(requests);
        Ok(acknowledged)
    }
}
