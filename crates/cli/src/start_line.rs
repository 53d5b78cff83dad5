//! The line on standard output by which a part says where it listens.
//!
//! `listening traffic=127.0.0.1:40163 admin=127.0.0.1:40165`: the word, then
//! `name=ip:port` pairs. It is the first line, and written once all are open, so that
//! a program which asked for port 0 learns the port and knows that it can connect.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;

const WORD: &str = "listening";

/// Writes the line, then one line for each of `notes`.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn announce(listeners: &[(&str, SocketAddr)], notes: &[String]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", line(listeners))?;
    for note in notes {
        writeln!(stdout, "{note}")?;
    }
    stdout.flush()
}

/// Reads one address back from the line; `None` if it is not such a line or has no such name.
pub(crate) fn address(line: &str, name: &str) -> Option<SocketAddr> {
    let mut words = line.split_whitespace();
    words.next().filter(|word| *word == WORD)?;
    words
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .and_then(|(_, address)| address.parse().ok())
}

fn line(listeners: &[(&str, SocketAddr)]) -> String {
    listeners
        .iter()
        .fold(WORD.to_owned(), |mut line, (name, address)| {
            write!(line, " {name}={address}").unwrap_or_default();
            line
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_can_be_read_back() {
        let traffic: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        let admin: SocketAddr = "[::1]:9".parse().unwrap();
        let line = line(&[("traffic", traffic), ("admin", admin)]);
        assert_eq!(line, "listening traffic=127.0.0.1:8080 admin=[::1]:9");
        assert_eq!(address(&line, "traffic"), Some(traffic));
        assert_eq!(address(&line, "admin"), Some(admin));
        assert_eq!(address(&line, "http"), None);
    }

    #[test]
    fn another_line_is_not_taken() {
        assert_eq!(address("started traffic=127.0.0.1:8080", "traffic"), None);
        assert_eq!(address("listening traffic=nowhere", "traffic"), None);
        assert_eq!(address("", "traffic"), None);
    }
}
