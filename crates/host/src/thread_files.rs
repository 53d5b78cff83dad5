//! What `/proc` says of one thread, read again and again from files kept open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The files of one thread. Reading a kept file costs half a microsecond, opening it anew eight
/// times as much; after the thread has ended, reading fails.
#[derive(Debug)]
pub(crate) struct ThreadFiles {
    tid: i32,
    stat: File,
    schedstat: Option<File>,
    syscall: Option<File>,
    wait_channel: Option<File>,
}

/// What was read of a thread at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadSample {
    /// Its identifier.
    pub(crate) tid: i32,
    /// Its name.
    pub(crate) name: String,
    /// Its scheduling state as one letter.
    pub(crate) state: char,
    /// The system call it is in.
    pub(crate) call: CallLine,
    /// The kernel's wait channel; read only where the system call may not be seen.
    pub(crate) wait_channel: Option<String>,
    /// Nanoseconds on a CPU since it began.
    pub(crate) cpu_ns: Option<i64>,
    /// Nanoseconds runnable without a CPU since it began.
    pub(crate) run_queue_ns: Option<i64>,
    /// How often it has been given a CPU since it began.
    pub(crate) timeslices: Option<i64>,
}

/// What `/proc/PID/task/TID/syscall` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallLine {
    /// It is on a CPU or ready to be.
    Running,
    /// It sleeps outside of any system call.
    None,
    /// It is in a system call.
    In {
        /// The number of the call.
        number: i64,
        /// Its arguments as the registers hold them.
        arguments: [u64; 6],
        /// The stack pointer.
        stack: u64,
    },
    /// It may not be seen.
    Denied,
}

impl ThreadFiles {
    /// Opens the files of a thread; those that may not be opened are left out, all but `stat`.
    ///
    /// # Errors
    /// What opening `stat` says: the thread has ended, or too many files are open.
    pub(crate) fn open(pid: i32, tid: i32) -> io::Result<Self> {
        let open = |file: &str| File::open(format!("/proc/{pid}/task/{tid}/{file}"));
        let stat = open("stat")?;
        let syscall = open("syscall").ok().filter(|file| read(file).is_some());
        // The wait channel is the second best: no file is kept for it where it is not needed.
        let wait_channel = if syscall.is_none() {
            open("wchan").ok()
        } else {
            None
        };
        Ok(Self {
            tid,
            stat,
            schedstat: open("schedstat").ok(),
            syscall,
            wait_channel,
        })
    }

    /// The thread's identifier.
    pub(crate) const fn tid(&self) -> i32 {
        self.tid
    }

    /// Reads all files; `None` when the thread has ended.
    pub(crate) fn read(&self) -> Option<ThreadSample> {
        let call = self
            .syscall
            .as_ref()
            .and_then(read)
            .and_then(|line| parse_call(&line))
            .unwrap_or(CallLine::Denied);
        let (name, state) = parse_stat(&read(&self.stat)?)?;
        let schedstat = self.schedstat.as_ref().and_then(read).unwrap_or_default();
        let [cpu_ns, run_queue_ns, timeslices] = parse_schedstat(&schedstat);
        Some(ThreadSample {
            tid: self.tid,
            name,
            state,
            call,
            wait_channel: self
                .wait_channel
                .as_ref()
                .and_then(read)
                .filter(|channel| channel != "0" && !channel.is_empty()),
            cpu_ns,
            run_queue_ns,
            timeslices,
        })
    }
}

impl ThreadSample {
    /// Whether its system call may not be seen.
    pub(crate) fn call_denied(&self) -> bool {
        self.call == CallLine::Denied
    }
}

/// How often a thread has been given a CPU since it began; `None` when it has ended.
pub(crate) fn timeslices(pid: i32, tid: i32) -> Option<i64> {
    let schedstat = File::open(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    let [_, _, timeslices] = parse_schedstat(&read(&schedstat)?);
    timeslices
}

/// Nanoseconds on a CPU, nanoseconds waiting for one, and how often it was given one.
fn parse_schedstat(line: &str) -> [Option<i64>; 3] {
    let mut numbers = line
        .split_ascii_whitespace()
        .map(|number| number.parse().ok());
    [(); 3].map(|()| numbers.next().flatten())
}

/// As much of a file as fits; these files are short.
fn read(file: &File) -> Option<String> {
    let mut bytes = [0; 512];
    let length = file.read_at(&mut bytes, 0).ok()?;
    let bytes = bytes.get(..length)?;
    Some(String::from_utf8_lossy(bytes).trim_end().to_owned())
}

/// The name is in parentheses and can hold any character, even a closing parenthesis.
fn parse_stat(line: &str) -> Option<(String, char)> {
    let (before, after) = line.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    Some((name.to_owned(), after.trim_start().chars().next()?))
}

fn parse_call(line: &str) -> Option<CallLine> {
    let mut words = line.split_ascii_whitespace();
    let number = match words.next()? {
        "running" => return Some(CallLine::Running),
        number => number.parse().ok()?,
    };
    if number < 0 {
        return Some(CallLine::None);
    }
    let mut hex = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = hex()?;
    }
    Some(CallLine::In {
        number,
        arguments,
        stack: hex()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_state() {
        assert_eq!(
            parse_stat("12 (a) R (b)) S 1 12"),
            Some(("a) R (b)".to_owned(), 'S'))
        );
        assert_eq!(parse_stat("12 a S"), None);
    }

    #[test]
    fn a_call_is_read_with_its_arguments() {
        assert_eq!(
            parse_call("7 0x0 0x0 0x1f4 0x3 0x4 0x5 0x7ffd0 0x7f00"),
            Some(CallLine::In {
                number: 7,
                arguments: [0, 0, 500, 3, 4, 5],
                stack: 0x7_ffd0,
            })
        );
        assert_eq!(parse_call("running"), Some(CallLine::Running));
        assert_eq!(parse_call("-1 0x7ffd0 0x7f00"), Some(CallLine::None));
        assert_eq!(parse_call("7 0x0 0x0"), None);
        assert_eq!(parse_call(""), None);
    }

    #[test]
    fn a_thread_that_waits_is_seen_waiting_and_gone_when_it_ended() {
        let (tell_tid, tid) = std::sync::mpsc::channel();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell_tid
                .send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            held.recv().unwrap_err();
        });
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let files = ThreadFiles::open(pid, tid.recv().unwrap()).unwrap();
        while files.read().unwrap().state != 'S' {
            std::thread::yield_now();
        }
        let sample = files.read().unwrap();
        assert!(matches!(sample.call, CallLine::In { .. }), "{sample:?}");
        assert!(sample.cpu_ns.unwrap() > 0);
        drop(release);
        thread.join().unwrap();
        while files.read().is_some() {
            std::thread::yield_now();
        }
    }
}
