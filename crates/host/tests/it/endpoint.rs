//! The endpoints: what the child processes do.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::select::select;
use nix::sys::time::TimeVal;
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use rustix::event::{Timespec, epoll};
use skewtap_host::{Watcher, WatcherSettings};
use skewtap_sockstamp::realtime_ns;

use crate::endpoint_process::{ADDRESS, MARK, ROLE, Watched, client, send_message};

/// Bytes of a message from the test to an endpoint.
pub(crate) const MESSAGE_BYTES: usize = 1_000;

/// How long the endpoints do other things than read.
pub(crate) const AWAY: Duration = Duration::from_millis(500);
const AWAY_MS: u16 = 500;

/// Not a test: other tests start it in a process of its own, with a role to play.
#[test]
#[ignore = "started by other tests as a child process"]
fn plays_the_role_it_is_given() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let address = std::env::var(ADDRESS).unwrap();
    // The thread has a name by which the tests find it among those of the test runner.
    std::thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || match role.strip_prefix("server-") {
            Some(role) => serve(role),
            None if role == "watch-as-nobody" => watch_as_nobody(),
            None => call(&role, &address),
        })
        .unwrap()
        .join()
        .unwrap();
}

fn call(role: &str, address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    if role == "half-close" {
        stream.shutdown(Shutdown::Write).unwrap();
    } else {
        stream.write_all(b"?").unwrap();
    }
    if role == "leave-unread" {
        std::thread::sleep(Duration::from_millis(100));
        return;
    }
    if role == "leave-open" {
        return wait_for_the_end_of_input();
    }
    let mut other_holder = (role == "share").then(|| share(&stream));
    be_away(role, &stream);
    if let Some(other) = &mut other_holder {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    tell("read", || {
        stream.read_exact(&mut [0; MESSAGE_BYTES]).unwrap();
    });
    if role != "read-and-leave" {
        wait_for_the_end_of_input();
    }
}

/// Starts another process that holds the same socket, as the children of a forked server do.
fn share(stream: &TcpStream) -> Child {
    rustix::io::fcntl_setfd(stream, rustix::io::FdFlags::empty()).unwrap();
    Command::new("sleep").arg("60").spawn().unwrap()
}

fn serve(role: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    say(&format!("port {}", listener.local_addr().unwrap().port()));
    if role == "late-accept" {
        std::thread::sleep(AWAY);
    }
    let mut accepted = None;
    tell("accepted", || accepted = Some(listener.accept().unwrap().0));
    if role == "late-read" {
        std::thread::sleep(AWAY);
    }
    tell("read", || {
        accepted
            .as_mut()
            .unwrap()
            .read_exact(&mut [0; MESSAGE_BYTES])
            .unwrap();
    });
    wait_for_the_end_of_input();
}

/// Not an endpoint: a watcher of another user than the endpoint it watches.
fn watch_as_nobody() {
    let (_client, mut stream) = client("sleep");
    setgroups(&[]).unwrap();
    setgid(Gid::from_raw(65534)).unwrap();
    setuid(Uid::from_raw(65534)).unwrap();
    let watcher = Watcher::start(WatcherSettings::default());
    let result = Watched::by(&watcher, send_message(&mut stream)).result();
    let found = result.process.is_some();
    say(&format!("outcome {:?} {found}", result.queue.outcome));
    say(&format!(
        "missing {}",
        result.process_missing.unwrap_or_default()
    ));
}

/// Does something else than read, in the way of the role.
fn be_away(role: &str, stream: &TcpStream) {
    match role {
        "read-at-once" => {}
        "sleep" | "half-close" | "read-and-leave" | "share" => std::thread::sleep(AWAY),
        "sleep-beside-a-napper" => {
            let napper = std::thread::Builder::new().name("napper".to_owned());
            napper
                .spawn(|| std::thread::sleep(Duration::from_secs(600)))
                .unwrap();
            std::thread::sleep(AWAY);
        }
        "poll-on-nothing" => {
            poll(&mut [], AWAY_MS).unwrap();
        }
        "select-on-nothing" => {
            let mut timeout = TimeVal::new(0, i64::from(AWAY_MS) * 1_000);
            select(0, None, None, None, &mut timeout).unwrap();
        }
        "poll-elsewhere" => {
            let (reader, _writer) = std::io::pipe().unwrap();
            let mut set = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
            poll(&mut set, AWAY_MS).unwrap();
        }
        "epoll-elsewhere" => {
            let (reader, _writer) = std::io::pipe().unwrap();
            wait_on_epoll(&reader, epoll::EventFlags::IN, 1);
        }
        // The first wait returns when the message comes; nothing is read, so the second does not.
        "epoll-lost-edge" => {
            wait_on_epoll(stream, epoll::EventFlags::IN | epoll::EventFlags::ET, 2)
        }
        "mutex" => wait_for_a_mutex(),
        "compute" => {
            let began = Instant::now();
            while began.elapsed() < AWAY {
                std::hint::spin_loop();
            }
        }
        other => panic!("no role {other}"),
    }
}

fn wait_on_epoll(descriptor: &impl AsFd, events: epoll::EventFlags, times: usize) {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&set, descriptor, epoll::EventData::new_u64(0), events).unwrap();
    let timeout = Timespec::try_from(AWAY).unwrap();
    for _ in 0..times {
        let mut came = Vec::with_capacity(4);
        epoll::wait(
            &set,
            rustix::buffer::spare_capacity(&mut came),
            Some(&timeout),
        )
        .unwrap();
    }
}

fn wait_for_a_mutex() {
    let mutex = Arc::new(Mutex::new(()));
    let held = Arc::clone(&mutex);
    let (tell_locked, locked) = mpsc::channel();
    std::thread::Builder::new()
        .name("holder".to_owned())
        .spawn(move || {
            let _guard = held.lock().unwrap();
            tell_locked.send(()).unwrap();
            std::thread::sleep(AWAY);
        })
        .unwrap();
    locked.recv().unwrap();
    drop(mutex.lock().unwrap());
}

/// Tells the clock before and after an act.
fn tell(act: &str, perform: impl FnOnce()) {
    let before = realtime_ns();
    perform();
    let after = realtime_ns();
    say(&format!("{act} {before} {after}"));
}

fn say(text: &str) {
    // The test runner writes to the same place without ending its lines.
    let line = format!("{MARK}{text}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
}

fn wait_for_the_end_of_input() {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}
