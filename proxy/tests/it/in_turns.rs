//! The same thing done straight with a server and through the proxy, in turns, so that whatever
//! else the machine does meets both alike.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::harness::{Running, config, connect, origin};

/// How often each way is taken.
const ROUNDS: usize = 7;

/// What a size may differ by: a tenth, but at least this.
const LEAST_TOLERANCE: Duration = Duration::from_millis(5);

/// What was found on each way, in rounds.
#[derive(Clone, Debug)]
pub(crate) struct Turns<T> {
    pub(crate) straight: Vec<T>,
    pub(crate) through: Vec<T>,
}

/// Lets a client and a server meet, straight and through a proxy in turns, on a new connection each
/// time; gives what the client found and what the server found.
pub(crate) fn in_turns<C, S: Send + 'static>(
    serve: impl FnMut(TcpStream) -> S + Send + 'static,
    mut ask: impl FnMut(TcpStream) -> C,
) -> (Turns<C>, Turns<S>) {
    let (address, server) = origin(ROUNDS * 2, serve);
    let proxy = Running::start(config(address));
    let mut client = Turns::default();
    for _ in 0..ROUNDS {
        client.straight.push(ask(connect(address)));
        client.through.push(ask(proxy.connect()));
    }
    let mut served = Turns::default();
    for (number, found) in server.join().unwrap().into_iter().enumerate() {
        if number % 2 == 0 {
            served.straight.push(found);
        } else {
            served.through.push(found);
        }
    }
    (client, served)
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self {
            straight: Vec::new(),
            through: Vec::new(),
        }
    }
}

impl Turns<Instant> {
    /// How long after these moments came those.
    pub(crate) fn until(&self, ends: &Self) -> Turns<Duration> {
        let between = |begins: &[Instant], ends: &[Instant]| {
            let pairs = begins.iter().zip(ends);
            pairs.map(|(begin, end)| *end - *begin).collect()
        };
        Turns {
            straight: between(&self.straight, &ends.straight),
            through: between(&self.through, &ends.through),
        }
    }
}

impl Turns<Duration> {
    /// Asserts that a stall of `planted` or more is there straight, and of the same size through the
    /// proxy. Whatever else the machine does can only lengthen one, so the shortest count.
    #[track_caller]
    pub(crate) fn assert_same_size(&self, planted: Duration) {
        let shortest = |found: &[Duration]| found.iter().copied().min().unwrap();
        let (straight, through) = (shortest(&self.straight), shortest(&self.through));
        assert!(straight >= planted, "no stall to compare with: {self:?}");
        let tolerance = LEAST_TOLERANCE.max(straight / 10);
        assert!(
            straight.abs_diff(through) <= tolerance,
            "{straight:?} straight is {through:?} through the proxy: {self:?}"
        );
    }
}

impl<T> Turns<T> {
    /// A part of what was found.
    pub(crate) fn map<U>(&self, part: impl Fn(&T) -> U) -> Turns<U> {
        Turns {
            straight: self.straight.iter().map(&part).collect(),
            through: self.through.iter().map(&part).collect(),
        }
    }
}
