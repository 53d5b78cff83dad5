//! Where spans go, and how a batch of them gets there.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::str::FromStr;
use std::time::Duration;

/// How long the collector may keep a report waiting, at each step.
const PATIENCE: Duration = Duration::from_secs(5);
/// Of an answer nothing beyond so many bytes is read.
const ANSWER_LIMIT: u64 = 64 * 1024;

/// The OTLP/HTTP address of a collector: `http://HOST:PORT`, with an optional path before
/// `/v1/traces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorUrl {
    authority: String,
    path: String,
}

/// The text is not a collector's address.
#[derive(Debug, PartialEq, Eq)]
pub struct BadCollectorUrl;

impl FromStr for CollectorUrl {
    type Err = BadCollectorUrl;

    fn from_str(text: &str) -> Result<Self, BadCollectorUrl> {
        let rest = text.strip_prefix("http://").ok_or(BadCollectorUrl)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = authority.rsplit_once(':').ok_or(BadCollectorUrl)?;
        port.parse::<u16>().map_err(|_| BadCollectorUrl)?;
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !plain(rest) || path.contains(['?', '#']) {
            return Err(BadCollectorUrl);
        }
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() {
            String::new()
        } else {
            format!("/{path}")
        };
        Ok(Self {
            authority: authority.to_owned(),
            path,
        })
    }
}

impl fmt::Display for CollectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

impl fmt::Display for BadCollectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not of the form http://HOST:PORT")
    }
}

impl std::error::Error for BadCollectorUrl {}

impl CollectorUrl {
    /// Sends one OTLP document on a connection of its own.
    ///
    /// # Errors
    /// The connection's, or [`io::ErrorKind::Other`] with the first line of an answer that
    /// is not a success.
    pub(crate) fn post(&self, document: &str) -> io::Result<()> {
        let mut stream = TcpStream::connect(&self.authority)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST {}/v1/traces HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.path,
            self.authority,
            document.len()
        );
        stream.write_all(format!("{head}{document}").as_bytes())?;
        let mut answer = Vec::new();
        stream.take(ANSWER_LIMIT).read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let first_line = answer.lines().next().unwrap_or_default();
        let status = first_line.split(' ').nth(1).unwrap_or_default();
        if status.len() == 3 && status.starts_with('2') {
            Ok(())
        } else {
            Err(io::Error::other(format!("answered {first_line:?}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_path() {
        for (text, shown) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
            ("http://[::1]:4318/", "http://[::1]:4318"),
            ("http://localhost:80/otlp/", "http://localhost:80/otlp"),
        ] {
            assert_eq!(text.parse::<CollectorUrl>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "127.0.0.1:4318",
            "https://127.0.0.1:4318",
            "http://127.0.0.1",
            "http://:4318",
            "http://host:port",
            "http://host:80/a b",
            "http://host:80/a?b",
            "http://host:80/\r\nX: y",
        ] {
            assert_eq!(
                text.parse::<CollectorUrl>(),
                Err(BadCollectorUrl),
                "{text:?}"
            );
        }
    }
}
