//! Takes what Alertmanager delivers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// A webhook that keeps every alert of every delivery.
pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    alerts: Arc<Mutex<Vec<Value>>>,
}

impl Receiver {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let alerts = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&alerts);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let delivered = delivery(stream.unwrap());
                let of_it = delivered["alerts"].as_array().unwrap().clone();
                kept.lock().unwrap().extend(of_it);
            }
        });
        Self { address, alerts }
    }

    /// The alerts of this name that were delivered so far, in order.
    pub(super) fn alerts(&self, name: &str) -> Vec<Value> {
        let alerts = self.alerts.lock().unwrap();
        let of_name = alerts
            .iter()
            .filter(|alert| alert["labels"]["alertname"] == name);
        of_name.cloned().collect()
    }
}

/// Reads a request that has a length, and closes the connection.
fn delivery(stream: TcpStream) -> Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    reader.get_mut().write_all(answer.as_bytes()).unwrap();
    serde_json::from_slice(&body).unwrap()
}
