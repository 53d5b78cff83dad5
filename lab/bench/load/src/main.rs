//! The program: reads its options, moves spans or bodies, says how many and how fast.
#![forbid(unsafe_code)]

mod batch;
mod bodies;
mod persist;
mod protobuf;
mod send;
mod sink;

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use batch::Batch;
use bodies::Way;
use send::Load;

const HELP: &str = "\
Clients and servers that cost little, so that what stands between them is what is measured.

Usage: bench-load send --to HOST:PORT [OPTIONS]       sends spans over OTLP/gRPC
       bench-load persist --to HOST:PORT [OPTIONS]    sends each until it is acknowledged
       bench-load sink --listen HOST:PORT [OPTIONS]   takes spans and keeps nothing
       bench-load bodies --listen HOST:PORT           serves and takes long bodies over HTTP
       bench-load get --to HOST:PORT [OPTIONS]        has a long body sent by `bodies`
       bench-load put --to HOST:PORT [OPTIONS]        sends a long body to `bodies`

Send:
  --streams N      requests under way at once, each on a connection of its own [default: 8]
  --spans N        spans of one request [default: 512]
  --seconds N      how long [default: 5]
  --batches N      stop after so many requests, however long it takes [default: no limit]
  --recorded FILE  send what `sink --keep` kept, each time with new trace and span ids, in
                   place of pairs of a client's and a server's span

Persist: --streams, --spans and --seconds as above, and
  --rate N         spans per second [default: 10000]
  --apart N        seconds between a request of clients' spans and that of their servers'
                   [default: 2]

Sink:
  --keep FILE      keep the body of the largest request so far in FILE

Get and put:
  --bytes N        how long the body is [default: 1073741824]

`send` and `persist` print one line: spans acknowledged, spans refused, bytes acknowledged, seconds;
`persist` also the spans of requests that broke off, which like refused ones were sent again. `get` and
`put` print how many seconds it took.

Exit codes: 2 bad options, 3 cannot connect, listen or go on.
";

fn main() -> ExitCode {
    let mut options = std::env::args().skip(1);
    let outcome = match options.next().as_deref() {
        Some("send") => read_send(options).map(send),
        Some("persist") => read_persist(options).map(persist),
        Some("sink") => read_sink(options).map(take),
        Some("bodies") => read_sink(options).map(serve_bodies),
        Some("get") => read_transfer(options).map(|to| transfer(to, Way::Down)),
        Some("put") => read_transfer(options).map(|to| transfer(to, Way::Up)),
        Some("-h" | "--help") => Ok(print(HELP)),
        _ => Err("say what to do".to_owned()),
    };
    let ended = outcome.unwrap_or_else(|reason| Err((2, format!("{reason}; see --help"))));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, reason)) => {
            // Where nobody reads errors the code has to do.
            drop(writeln!(io::stderr(), "bench-load: {reason}"));
            ExitCode::from(code)
        }
    }
}

type Ended = Result<(), (u8, String)>;

struct Send {
    load: Load,
    spans: usize,
    recorded: Option<String>,
}

struct Sink {
    listen: SocketAddr,
    keep: Option<String>,
}

fn read_send(mut options: impl Iterator<Item = String>) -> Result<Send, String> {
    let mut to = None;
    let (mut streams, mut seconds, mut batches) = (8, 5, u64::MAX);
    let (mut spans, mut recorded) = (512, None);
    while let Some(name) = options.next() {
        let value = options
            .next()
            .ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--to" => to = Some(parse(&name, &value)?),
            "--streams" => streams = parse(&name, &value)?,
            "--spans" => spans = parse(&name, &value)?,
            "--seconds" => seconds = parse(&name, &value)?,
            "--batches" => batches = parse(&name, &value)?,
            "--recorded" => recorded = Some(value),
            _ => return Err(format!("no option {name}")),
        }
    }
    let load = Load {
        to: to.ok_or("--to is missing")?,
        streams,
        lasting: Duration::from_secs(seconds),
        batches,
    };
    Ok(Send {
        load,
        spans,
        recorded,
    })
}

struct Persist {
    load: persist::Load,
    spans: usize,
}

fn read_persist(mut options: impl Iterator<Item = String>) -> Result<Persist, String> {
    let mut to = None;
    let (mut streams, mut spans, mut seconds, mut rate, mut apart) = (8, 512, 5, 10_000, 2);
    while let Some(name) = options.next() {
        let value = options
            .next()
            .ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--to" => to = Some(parse(&name, &value)?),
            "--streams" => streams = parse(&name, &value)?,
            "--spans" => spans = parse(&name, &value)?,
            "--seconds" => seconds = parse(&name, &value)?,
            "--rate" => rate = parse(&name, &value)?,
            "--apart" => apart = parse(&name, &value)?,
            _ => return Err(format!("no option {name}")),
        }
    }
    let load = persist::Load {
        to: to.ok_or("--to is missing")?,
        streams,
        lasting: Duration::from_secs(seconds),
        rate: rate.max(1),
        apart: Duration::from_secs(apart),
    };
    Ok(Persist { load, spans })
}

fn read_sink(mut options: impl Iterator<Item = String>) -> Result<Sink, String> {
    let (mut listen, mut keep) = (None, None);
    while let Some(name) = options.next() {
        let value = options
            .next()
            .ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--listen" => listen = Some(parse(&name, &value)?),
            "--keep" => keep = Some(value),
            _ => return Err(format!("no option {name}")),
        }
    }
    let listen = listen.ok_or("--listen is missing")?;
    Ok(Sink { listen, keep })
}

fn read_transfer(mut options: impl Iterator<Item = String>) -> Result<(SocketAddr, u64), String> {
    let (mut to, mut length) = (None, 1 << 30);
    while let Some(name) = options.next() {
        let value = options
            .next()
            .ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--to" => to = Some(parse(&name, &value)?),
            "--bytes" => length = parse(&name, &value)?,
            _ => return Err(format!("no option {name}")),
        }
    }
    Ok((to.ok_or("--to is missing")?, length))
}

fn parse<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{name} cannot be {value}"))
}

fn send(send: Send) -> Ended {
    let broken = |reason: String| (3, reason);
    let batch = match &send.recorded {
        Some(file) => {
            let body = fs::read(file).map_err(|error| broken(format!("{file}: {error}")))?;
            Batch::recorded(body).ok_or_else(|| broken(format!("{file} holds no spans")))?
        }
        None => Batch::of_pairs(send.spans / 2),
    };
    let runtime = runtime()?;
    let sent = runtime.block_on(send::run(&send.load, &batch));
    let sent = sent.map_err(|error| broken(format!("{}: {error}", send.load.to)))?;
    print(&format!(
        "{} {} {} {:.6}\n",
        sent.acknowledged, sent.refused, sent.bytes, sent.seconds
    ))
}

fn persist(persist: Persist) -> Ended {
    let runtime = runtime()?;
    let sent = runtime.block_on(persist::run(&persist.load, &Batch::sides(persist.spans)));
    let sent = sent.map_err(|error| (3, format!("{}: {error}", persist.load.to)))?;
    print(&format!(
        "{} {} {} {:.6} {}\n",
        sent.acknowledged, sent.refused, sent.bytes, sent.seconds, sent.broken
    ))
}

fn take(sink: Sink) -> Ended {
    let runtime = runtime()?;
    let taken = runtime.block_on(sink::run(sink.listen, sink.keep.as_deref()));
    taken.map_err(|error| (3, format!("{}: {error}", sink.listen)))
}

fn serve_bodies(sink: Sink) -> Ended {
    bodies::serve(sink.listen).map_err(|error| (3, format!("{}: {error}", sink.listen)))
}

fn transfer((to, length): (SocketAddr, u64), way: Way) -> Ended {
    let seconds = bodies::transfer(to, way, length);
    let seconds = seconds.map_err(|error| (3, format!("{to}: {error}")))?;
    print(&format!("{seconds:.6}\n"))
}

/// One thread: what it needs beyond that would be taken from those that are measured.
fn runtime() -> Result<tokio::runtime::Runtime, (u8, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| (3, error.to_string()))
}

fn print(text: &str) -> Ended {
    let mut out = io::stdout();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| (3, error.to_string()))
}
