//! A server that delays as it is asked to, and knows how long it really took.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Serves until the tests end.
pub(crate) struct DelayingServer {
    pub(crate) address: SocketAddr,
    served: Arc<Mutex<Vec<Served>>>,
}

/// What the server measured of one request: at most what the wire saw, because it reads after a
/// request's arrival and writes before a response's departure.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) target: String,
    /// From the end of the request to the beginning of the response, in seconds.
    pub(crate) waited: f64,
    /// From the first half of the response to the second, in seconds.
    pub(crate) paused: f64,
}

impl DelayingServer {
    /// Starts a server. A request's query says how it is answered: `delay_ms` before the response,
    /// `pause_ms` within it.
    pub(crate) fn start() -> Self {
        Self::with(|socket| socket)
    }

    /// The same under TLS.
    pub(crate) fn start_tls(tls: ServerConfig) -> Self {
        let tls = Arc::new(tls);
        Self::with(move |socket| {
            let connection = ServerConnection::new(Arc::clone(&tls)).unwrap();
            StreamOwned::new(connection, socket)
        })
    }

    fn with<S: Read + Write + Send + 'static>(
        wrap: impl Fn(TcpStream) -> S + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&served);
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, log) = (socket.unwrap(), Arc::clone(&log));
                socket.set_nodelay(true).unwrap();
                let stream = wrap(socket);
                thread::spawn(move || serve(stream, &log));
            }
        });
        Self { address, served }
    }

    /// Where to ask for `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All that was served so far.
    pub(crate) fn served(&self) -> Vec<Served> {
        self.served.lock().unwrap().clone()
    }

    /// The one request that was served.
    pub(crate) fn only(&self) -> Served {
        let served = self.served();
        assert_eq!(served.len(), 1, "{served:?}");
        served[0].clone()
    }
}

fn serve(stream: impl Read + Write, log: &Mutex<Vec<Served>>) {
    let mut reader = BufReader::new(stream);
    while let Some(target) = read_request(&mut reader) {
        let read = Instant::now();
        thread::sleep(wanted(&target, "delay_ms"));
        let began = Instant::now();
        let writer = reader.get_mut();
        let half = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\no";
        // A client that is gone has its own account of that.
        if writer.write_all(half.as_bytes()).is_err() || writer.flush().is_err() {
            return;
        }
        let half = Instant::now();
        thread::sleep(wanted(&target, "pause_ms"));
        let paused = half.elapsed();
        log.lock().unwrap().push(Served {
            target,
            waited: began.duration_since(read).as_secs_f64(),
            paused: paused.as_secs_f64(),
        });
        if writer.write_all(b"k\n").is_err() || writer.flush().is_err() {
            return;
        }
    }
}

/// Reads a request to its end, and gives its target; `None` when there is no more.
fn read_request(reader: &mut BufReader<impl Read>) -> Option<String> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|bytes| *bytes > 0)?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        let field = field.trim().to_ascii_lowercase();
        if field.is_empty() {
            break;
        }
        if let Some(value) = field.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(target)
}

fn wanted(target: &str, name: &str) -> Duration {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value);
    Duration::from_millis(value.map_or(0, |value| value.parse().unwrap()))
}
