//! A network with a name server of the test's own, for programs that look names up there.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use nix::sched::{CloneFlags, unshare};
use tempfile::TempDir;

use super::not_run::not_run;

/// Addresses of this network besides loopback, one of each family. The first is preferred by whoever
/// follows RFC 6724.
pub(super) const ADDRESSES: [&str; 2] = ["2001:db8::1", "192.0.2.1"];

/// What the system's resolver does: it asks again after a second.
const RESOLVER: &str = "nameserver 127.0.0.1\noptions timeout:1 attempts:2\n";

/// A question for addresses.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) name: String,
    /// Whether for those of IPv6.
    pub(super) six: bool,
    /// How often the same was asked before.
    pub(super) before: usize,
}

/// What is answered.
pub(super) enum Answer {
    /// These addresses, as far as they are of the family that was asked for.
    Addresses(Vec<IpAddr>),
    NoSuchName,
    /// Nothing, as if the question or the answer had been lost.
    Silence,
}

/// The name server, until the test ends.
pub(super) struct OwnNames {
    folder: TempDir,
    asked: Arc<Mutex<Vec<(Instant, Question)>>>,
    answered: Arc<Mutex<Vec<Instant>>>,
}

/// Runs `test` in a thread with a network of its own, or puts it down as not run.
pub(super) fn in_own_network(test: impl FnOnce() + Send + 'static) {
    let name = thread::current().name().unwrap().to_owned();
    let thread = thread::Builder::new().name(name).spawn(move || {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            return not_run("needs root, for a network namespace");
        }
        ip("link set lo up");
        let [six, four] = ADDRESSES;
        ip(&format!("address add {six}/128 dev lo nodad"));
        ip(&format!("address add {four}/32 dev lo"));
        test();
    });
    if let Err(panic) = thread.unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status();
    assert!(status.unwrap().success(), "ip {words}");
}

/// Has this network swallow whatever is sent to `address`.
pub(super) fn silence(address: &str) {
    let family = if address.contains(':') { "ip6" } else { "ip" };
    let rules = format!(
        "table inet dead {{ chain input {{ type filter hook input priority 0; \
         {family} daddr {address} drop; }}; }}"
    );
    let status = Command::new("nft")
        .arg(&rules)
        .stdin(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{rules}");
}

impl OwnNames {
    /// Starts it in the network of the calling thread.
    pub(super) fn start(answer: impl Fn(&Question) -> Answer + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("resolv.conf"), RESOLVER).unwrap();
        fs::write(folder.path().join("nsswitch.conf"), "hosts: files dns\n").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
        let names = Self {
            folder,
            asked: Arc::default(),
            answered: Arc::default(),
        };
        let (asked, answered) = (Arc::clone(&names.asked), Arc::clone(&names.answered));
        thread::spawn(move || {
            loop {
                let mut space = [0; 512];
                let (length, from) = socket.recv_from(&mut space).unwrap();
                let query = &space[..length];
                let question = {
                    let mut asked = asked.lock().unwrap();
                    let question = question_of(query, &asked);
                    asked.push((Instant::now(), question.clone()));
                    question
                };
                if let Some(reply) = reply(query, &question, answer(&question)) {
                    answered.lock().unwrap().push(Instant::now());
                    socket.send_to(&reply, from).unwrap();
                }
            }
        });
        names
    }

    /// From the first question to the last question or answer, in seconds: at most what a look-up
    /// took.
    pub(super) fn took(&self) -> f64 {
        let asked = self.asked.lock().unwrap();
        let first = asked.first().unwrap().0;
        let answered = self.answered.lock().unwrap();
        let last = asked
            .last()
            .map(|(at, _)| *at)
            .max(answered.last().copied());
        last.unwrap().duration_since(first).as_secs_f64()
    }

    /// The program as it is to be started, with arguments to be added, so that it asks here.
    pub(super) fn ask_here(&self, program: &str) -> Command {
        let bind = |name: &str| {
            let own = self.file(name);
            format!("mount --bind '{}' /etc/{name}", own.display())
        };
        let script = format!(
            "{} && {} && exec \"$0\" \"$@\"",
            bind("resolv.conf"),
            bind("nsswitch.conf")
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, program]);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The question of a query, which is the only one in it.
fn question_of(query: &[u8], asked: &[(Instant, Question)]) -> Question {
    let mut labels = Vec::new();
    let mut at = 12;
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(std::str::from_utf8(&query[at + 1..end]).unwrap());
        at = end;
    }
    let name = labels.join(".").to_ascii_lowercase();
    let six = query[at + 2] == 28;
    let same = asked
        .iter()
        .filter(|(_, other)| other.name == name && other.six == six);
    Question {
        before: same.count(),
        name,
        six,
    }
}

/// The message that answers a query.
fn reply(query: &[u8], question: &Question, answer: Answer) -> Option<Vec<u8>> {
    let (code, addresses) = match answer {
        Answer::Addresses(addresses) => (0, addresses),
        Answer::NoSuchName => (3, Vec::new()),
        Answer::Silence => return None,
    };
    let fitting: Vec<_> = addresses
        .into_iter()
        .filter(|address| address.is_ipv6() == question.six)
        .collect();
    let question_end = 12 + question.name.len() + 2 + 4;
    let mut reply = query[..2].to_vec();
    // A response, with recursion; one question, so many answers, nothing else.
    let count = u8::try_from(fitting.len()).unwrap();
    reply.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
    reply.extend(&query[12..question_end]);
    for address in fitting {
        let (kind, length, bytes) = match address {
            IpAddr::V4(address) => (1, 4, address.octets().to_vec()),
            IpAddr::V6(address) => (28, 16, address.octets().to_vec()),
        };
        // The name of the question; the class of the internet; not to be kept.
        reply.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 0, 0, length]);
        reply.extend(bytes);
    }
    Some(reply)
}
