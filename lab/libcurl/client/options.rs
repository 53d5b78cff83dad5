//! The command line.

use std::str::FromStr;

pub(crate) const HELP: &str = "\
Makes one HTTP request with libcurl, prints how long it took, and reports a client span for it.

Usage: client --server HOST:PORT [OPTIONS]

Request:
  --server HOST:PORT     delay server, or a reverse proxy in front of it (required)
  --proxy URL            send the request to this forward proxy, in absolute form
  --method NAME          get, post, or expect: a POST that waits for '100 Continue' [default: get]
  --body BYTES           length of a POST's body [default: 2048]
  --timeout-ms N         CURLOPT_TIMEOUT_MS; without a limit no version sleeps [default: none]
  --warm                 open the connection with a request of no delay first
  --delay-ms N           delay that the server is asked for [default: 0]
  --delay-100-ms N       how late the server sends '100 Continue' [default: 0]
  --no-100               ask the server to withhold '100 Continue'
  --sweep-ms FROM:TO:STEP
                         one child process for each delay, side by side, 40 ms apart

Report:
  --otlp URL             OTLP/HTTP collector for the span [default: http://127.0.0.1:4318]
  --no-span              report no span
  --service NAME         service.name of the span [default: libcurl-client]
  --clock-offset-ms N    report times N ms ahead of this machine's clock (may be negative)

  --version              name and version of libcurl and of what it links
  -h, --help             this text

Prints one line of JSON for the request, or for each request of a sweep in the order of the delays.

Exit codes: 0 a response came, whatever its status; 1 the request failed; 2 bad options;
3 the span could not be delivered. A sweep ends with the highest code of its requests.

Example:
  client --server 127.0.0.1:9000 --method expect --timeout-ms 30000 --sweep-ms 250:8250:250
";

/// The most requests of one sweep.
const SWEEP_LIMIT: usize = 256;

pub(crate) enum Command {
    Help,
    Version,
    Call(Options),
    Sweep(Sweep),
}

#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) server: String,
    pub(crate) proxy: String,
    pub(crate) method: MethodName,
    pub(crate) body: usize,
    pub(crate) timeout_ms: Option<u32>,
    pub(crate) warm: bool,
    pub(crate) delay_ms: u64,
    pub(crate) delay_100_ms: u64,
    pub(crate) no_100: bool,
    pub(crate) otlp: String,
    pub(crate) report: bool,
    pub(crate) service: String,
    pub(crate) clock_offset_ms: i64,
}

/// The same call with one delay after the other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sweep {
    pub(crate) delays_ms: Vec<u64>,
    /// The arguments of a call, without its delay.
    pub(crate) arguments: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MethodName {
    Get,
    Post,
    Expect,
}

/// Reads the command line; the error says which argument is wrong and why.
pub(crate) fn parse(arguments: &[String]) -> Result<Command, String> {
    let mut options = Options::default();
    let mut delays_ms = None;
    let mut kept = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(option) = rest.next() {
        match option {
            "-h" | "--help" => return Ok(Command::Help),
            "--version" => return Ok(Command::Version),
            "--warm" => options.warm = true,
            "--no-100" => options.no_100 = true,
            "--no-span" => options.report = false,
            _ => {
                let value = rest.next();
                if option == "--sweep-ms" {
                    delays_ms = Some(delays(value.unwrap_or_default())?);
                    continue;
                }
                options.set(option, value)?;
                kept.extend([option.to_owned(), value.unwrap_or_default().to_owned()]);
                continue;
            }
        }
        kept.push(option.to_owned());
    }
    options.check()?;
    Ok(match delays_ms {
        Some(delays_ms) => Command::Sweep(Sweep {
            delays_ms,
            arguments: kept,
        }),
        None => Command::Call(options),
    })
}

impl Default for Options {
    fn default() -> Self {
        Self {
            server: String::new(),
            proxy: String::new(),
            method: MethodName::Get,
            body: 2048,
            timeout_ms: None,
            warm: false,
            delay_ms: 0,
            delay_100_ms: 0,
            no_100: false,
            otlp: "http://127.0.0.1:4318".to_owned(),
            report: true,
            service: "libcurl-client".to_owned(),
            clock_offset_ms: 0,
        }
    }
}

impl Options {
    /// The host part of `--server`.
    pub(crate) fn host(&self) -> &str {
        self.server
            .rsplit_once(':')
            .map_or(self.server.as_str(), |(host, _)| host)
    }

    /// The port of `--server`; 80 if it has none.
    pub(crate) fn port(&self) -> u16 {
        self.server
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok())
            .unwrap_or(80)
    }

    fn set(&mut self, option: &str, text: Option<&str>) -> Result<(), String> {
        match option {
            "--server" => self.server = value(option, text)?,
            "--proxy" => self.proxy = value(option, text)?,
            "--method" => self.method = value(option, text)?,
            "--body" => self.body = value(option, text)?,
            "--timeout-ms" => self.timeout_ms = Some(value(option, text)?),
            "--delay-ms" => self.delay_ms = value(option, text)?,
            "--delay-100-ms" => self.delay_100_ms = value(option, text)?,
            "--otlp" => self.otlp = value(option, text)?,
            "--service" => self.service = value(option, text)?,
            "--clock-offset-ms" => self.clock_offset_ms = value(option, text)?,
            _ => return Err(format!("unknown option {option}")),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let (host, port) = self.server.rsplit_once(':').unwrap_or_default();
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err("--server must be given as HOST:PORT".to_owned());
        }
        Ok(())
    }
}

impl MethodName {
    /// The method on the wire.
    pub(crate) fn http(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post | Self::Expect => "POST",
        }
    }
}

impl FromStr for MethodName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "get" => Ok(Self::Get),
            "post" => Ok(Self::Post),
            "expect" => Ok(Self::Expect),
            _ => Err("not one of get, post, expect"),
        }
    }
}

fn value<T: FromStr<Err: std::fmt::Display>>(
    option: &str,
    text: Option<&str>,
) -> Result<T, String> {
    let text = text.ok_or_else(|| format!("{option} needs a value"))?;
    text.parse()
        .map_err(|error| format!("{option} {text}: {error}"))
}

/// The delays from FROM to TO, both included.
fn delays(text: &str) -> Result<Vec<u64>, String> {
    let bad = || format!("--sweep-ms {text}: not FROM:TO:STEP in milliseconds");
    let numbers: Vec<u64> = text
        .split(':')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| bad())?;
    let [from, to, step] = numbers[..] else {
        return Err(bad());
    };
    if step == 0 || from > to {
        return Err(bad());
    }
    let step = usize::try_from(step).map_err(|_| bad())?;
    let delays: Vec<u64> = (from..=to).step_by(step).take(SWEEP_LIMIT + 1).collect();
    if delays.len() > SWEEP_LIMIT {
        return Err(format!(
            "--sweep-ms {text}: more than {SWEEP_LIMIT} requests"
        ));
    }
    Ok(delays)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_call_has_defaults() {
        let Ok(Command::Call(options)) = parsed("--server [::1]:9000 --method expect") else {
            panic!("not a call");
        };
        assert_eq!((options.host(), options.port()), ("[::1]", 9000));
        assert_eq!(
            (options.method.http(), options.timeout_ms, options.body),
            ("POST", None, 2048)
        );
        assert!(options.report);
    }

    #[test]
    fn a_sweep_hands_all_but_itself_to_its_children() {
        let line = "--server h:1 --sweep-ms 250:1000:250 --warm --timeout-ms 30000";
        let Ok(Command::Sweep(sweep)) = parsed(line) else {
            panic!("not a sweep")
        };
        assert_eq!(sweep.delays_ms, [250, 500, 750, 1000]);
        assert_eq!(
            sweep.arguments,
            ["--server", "h:1", "--warm", "--timeout-ms", "30000"]
        );
    }

    #[test]
    fn a_wrong_argument_is_named() {
        for (line, named) in [
            ("--server h", "--server"),
            ("--timeout-ms 3", "--server"),
            ("--server h:1 --delay-ms", "--delay-ms"),
            ("--server h:1 --delay-ms -1", "--delay-ms -1"),
            ("--server h:1 --method put", "--method put"),
            ("--server h:1 --sweep-ms 1:2", "--sweep-ms 1:2"),
            ("--server h:1 --sweep-ms 2:1:1", "--sweep-ms 2:1:1"),
            ("--server h:1 --sweep-ms 1:2:0", "--sweep-ms 1:2:0"),
            ("--server h:1 --sweep-ms 1:9999:1", "256"),
            ("--server h:1 --bogus 1", "--bogus"),
        ] {
            let Err(reason) = parsed(line) else {
                panic!("{line} was taken")
            };
            assert!(reason.contains(named), "{line}: {reason}");
        }
    }
}
