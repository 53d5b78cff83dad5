//! The two ways in which the demo's clients wait for their response.
//!
//! The faulty one is the loop of `curl_easy_perform` in libcurl 7.61.0 to 7.62.0: it takes
//! "nothing came for a second" for "there is nothing to watch", and then sleeps for up to a
//! second so as not to spin, with its socket out of sight.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::args::Behaviour;

/// How long the faulty loop watches, and how long it then does not, in milliseconds.
const TURN_MS: u16 = 1000;

/// What a client knows of its own waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WaitLog {
    /// Sleeps without an eye on the socket.
    pub(super) blind_sleeps: u32,
    /// Whether bytes lay in the socket the moment the last such sleep was over.
    pub(super) slept_over_response: bool,
}

/// Waits as `behaviour` does until `socket` has something to read or `deadline` is over.
///
/// # Errors
/// `TimedOut` at the deadline, or whatever `poll` fails with.
pub(super) fn wait_readable(
    behaviour: Behaviour,
    socket: &TcpStream,
    log: &mut WaitLog,
    deadline: Instant,
) -> io::Result<()> {
    match behaviour {
        Behaviour::Healthy => watch(socket, time_left(deadline)?).and_then(|readable| {
            if readable {
                Ok(())
            } else {
                Err(io::ErrorKind::TimedOut.into())
            }
        }),
        Behaviour::BlindSleep => loop {
            time_left(deadline)?;
            if watch(socket, PollTimeout::from(TURN_MS))? {
                return Ok(());
            }
            sleep_blind()?;
            log.blind_sleeps = log.blind_sleeps.saturating_add(1);
            if watch(socket, PollTimeout::ZERO)? {
                log.slept_over_response = true;
                return Ok(());
            }
        },
    }
}

fn watch(socket: &TcpStream, at_most: PollTimeout) -> io::Result<bool> {
    let mut watched = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match poll(&mut watched, at_most) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn sleep_blind() -> io::Result<()> {
    match poll(&mut [], PollTimeout::from(TURN_MS)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn time_left(deadline: Instant) -> io::Result<PollTimeout> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left < Duration::from_millis(1) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    PollTimeout::try_from(left).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::thread;

    fn wait(behaviour: Behaviour, delay: Duration) -> (WaitLog, Duration) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let began = Instant::now();
        let sender = thread::spawn(move || {
            thread::sleep(delay);
            server.write_all(b"x").unwrap();
            server
        });
        let mut log = WaitLog::default();
        let deadline = began + Duration::from_secs(10);
        wait_readable(behaviour, &client, &mut log, deadline).unwrap();
        let took = began.elapsed();
        drop(sender.join().unwrap());
        (log, took)
    }

    #[test]
    fn the_faulty_loop_sleeps_over_what_comes_in_its_second_second() {
        let (log, took) = wait(Behaviour::BlindSleep, Duration::from_millis(1300));
        assert!(log.slept_over_response);
        assert_eq!(log.blind_sleeps, 1);
        assert!(took >= Duration::from_millis(2000), "{took:?}");
    }

    #[test]
    fn the_faulty_loop_sees_at_once_what_comes_while_it_watches() {
        let (log, took) = wait(Behaviour::BlindSleep, Duration::from_millis(300));
        assert_eq!(log, WaitLog::default());
        assert!(took >= Duration::from_millis(300), "{took:?}");
    }

    #[test]
    fn the_healthy_loop_never_sleeps_blind() {
        let (log, took) = wait(Behaviour::Healthy, Duration::from_millis(1300));
        assert_eq!(log, WaitLog::default());
        assert!(took >= Duration::from_millis(1300), "{took:?}");
    }

    #[test]
    fn the_deadline_holds() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let past = Instant::now();
        for behaviour in [Behaviour::Healthy, Behaviour::BlindSleep] {
            let error = wait_readable(behaviour, &client, &mut WaitLog::default(), past);
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
    }
}
