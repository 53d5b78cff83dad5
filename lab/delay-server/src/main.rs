//! The program: reads its options, says where it listens, serves.
#![forbid(unsafe_code)]

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::str::FromStr;

use delay_server::{DelayServer, Settings};

const HELP: &str = "\
Answers HTTP/1.1 requests after the delay they ask for, and reports a server span for each.

Usage: delay-server [OPTIONS]

Options:
  --listen HOST:PORT     where to listen; port 0 takes a free one [default: 127.0.0.1:0]
  --otlp URL             OTLP/HTTP collector for the spans [default: http://127.0.0.1:4318]
  --no-span              report no spans
  --service NAME         service.name of the spans [default: delay-server]
  --clock-offset-ms N    report times N ms ahead of this machine's clock (may be negative)
  -h, --help             this text

It prints 'listening HOST:PORT' once it accepts connections, and serves until it is ended.
A request says in its query what it wants:
  delay_ms=N     wait so long between the end of the body and the answer
  delay100_ms=N  wait so long before '100 Continue', where one is expected
  no100=1        never send '100 Continue'

Exit codes: 2 bad options, 3 cannot listen or cannot go on.
";

fn main() -> ExitCode {
    let settings = match parse(std::env::args().skip(1)) {
        Ok(Some(settings)) => settings,
        Ok(None) => return print(HELP),
        Err(reason) => return fail(2, &format!("{reason}; see --help")),
    };
    let listen = settings.listen;
    let server = match DelayServer::bind(settings) {
        Ok(server) => server,
        Err(error) => {
            return fail(
                3,
                &format!("cannot listen on {listen}: {error}; try --listen"),
            );
        }
    };
    if print(&format!("listening {}\n", server.address())) != ExitCode::SUCCESS {
        return ExitCode::from(3);
    }
    match server.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(3, &format!("cannot go on serving {listen}: {error}")),
    }
}

/// The settings that the options ask for; `None` if they ask for help.
fn parse(mut options: impl Iterator<Item = String>) -> Result<Option<Settings>, String> {
    let mut settings = Settings {
        listen: ([127, 0, 0, 1], 0).into(),
        collector: None,
        service: "delay-server".to_owned(),
        clock_offset_ms: 0,
    };
    let (mut otlp, mut withhold) = ("http://127.0.0.1:4318".to_owned(), false);
    while let Some(option) = options.next() {
        match option.as_str() {
            "--listen" => settings.listen = value(&option, options.next())?,
            "--otlp" => otlp = value(&option, options.next())?,
            "--service" => settings.service = value(&option, options.next())?,
            "--clock-offset-ms" => settings.clock_offset_ms = value(&option, options.next())?,
            "--no-span" => withhold = true,
            "-h" | "--help" => return Ok(None),
            _ => return Err(format!("unknown option {option}")),
        }
    }
    if !withhold {
        settings.collector = Some(value("--otlp", Some(otlp))?);
    }
    Ok(Some(settings))
}

fn value<T: FromStr<Err: std::fmt::Display>>(
    option: &str,
    text: Option<String>,
) -> Result<T, String> {
    let text = text.ok_or_else(|| format!("{option} needs a value"))?;
    text.parse()
        .map_err(|error| format!("{option} {text}: {error}"))
}

fn print(text: &str) -> ExitCode {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(3),
    }
}

fn fail(code: u8, reason: &str) -> ExitCode {
    drop(writeln!(io::stderr(), "delay-server: {reason}"));
    ExitCode::from(code)
}
