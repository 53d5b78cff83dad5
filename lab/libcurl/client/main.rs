//! Makes one HTTP request with the libcurl that the enclosing package links, times it, and reports
//! an OpenTelemetry client span for it, as an instrumented program would.
#![deny(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::let_underscore_must_use,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::unwrap_used,
    unreachable_pub
)]

mod call;
mod client_span;
#[expect(unsafe_code, reason = "libcurl is a C library")]
mod easy;
mod options;
mod sweep;

use std::io::{self, Write as _};
use std::process::ExitCode;

use call::Call;
use easy::{Easy, Method, Request};
use options::{Command, HELP, Options};

/// How long a collector may take to accept the span.
const REPORT_TIMEOUT_MS: u32 = 10_000;

/// Why the program ends with another code than 0.
struct Failure {
    code: u8,
    reason: String,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(failure) => {
            drop(writeln!(io::stderr(), "client: {}", failure.reason));
            ExitCode::from(failure.code)
        }
    }
}

fn run() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = options::parse(&arguments).map_err(|reason| Failure {
        code: 2,
        reason: format!("{reason}; see --help"),
    })?;
    match command {
        Command::Help => print(HELP),
        Command::Version => print(&format!("{}\n", easy::version())),
        Command::Sweep(sweep) => sweep::run(&sweep).map_err(|error| Failure {
            code: 1,
            reason: format!("cannot run the sweep: {error}"),
        }),
        Command::Call(options) => call_and_report(&options),
    }
}

fn call_and_report(options: &Options) -> Result<ExitCode, Failure> {
    let calls = make_calls(options)?;
    if let Some(timed) = calls.last() {
        print(&timed.json_line())?;
    }
    if options.report {
        report(options, &calls)?;
    }
    let failed = calls
        .last()
        .is_none_or(|timed| timed.transfer.failure.is_some());
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The timed call, after the one that opens the connection if that is wanted. The connection is
/// closed before anything else is done.
fn make_calls(options: &Options) -> Result<Vec<Call>, Failure> {
    let libcurl_failed = |reason| Failure { code: 1, reason };
    let mut easy = Easy::new().map_err(libcurl_failed)?;
    let mut calls = Vec::new();
    if options.warm {
        let warm_up = Options {
            delay_ms: 0,
            delay_100_ms: 0,
            ..options.clone()
        };
        calls.push(Call::make(&mut easy, &warm_up).map_err(libcurl_failed)?);
    }
    calls.push(Call::make(&mut easy, options).map_err(libcurl_failed)?);
    Ok(calls)
}

fn report(options: &Options, calls: &[Call]) -> Result<(), Failure> {
    let url = format!("{}/v1/traces", options.otlp.trim_end_matches('/'));
    let not_delivered = |why| Failure {
        code: 3,
        reason: format!("span not delivered to {url}: {why}"),
    };
    let body = client_span::document(options, calls).into_bytes();
    let request = Request {
        url: &url,
        proxy: "",
        method: Method::Post {
            body,
            expect_continue: false,
        },
        headers: vec!["Content-Type: application/json".to_owned()],
        timeout_ms: Some(REPORT_TIMEOUT_MS),
    };
    let transfer = Easy::new()
        .and_then(|mut easy| easy.perform(&request))
        .map_err(not_delivered)?;
    match (transfer.failure, transfer.status) {
        (None, Some(200..=299)) => Ok(()),
        (None, status) => Err(not_delivered(format!(
            "status {}",
            status.unwrap_or_default()
        ))),
        (Some(failure), _) => Err(not_delivered(failure.message)),
    }
}

fn print(text: &str) -> Result<ExitCode, Failure> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| Failure {
            code: 1,
            reason: format!("cannot print: {error}"),
        })
}
