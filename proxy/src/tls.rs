//! TLS round one leg, driven by hand so that every plaintext byte keeps its time.
//!
//! A socket's stamps are of ciphertext, HTTP's boundaries lie in plaintext. One bridges them: a
//! plaintext byte can be read when the TLS record that carries it is complete. So it counts as
//! arrived with the last byte of its record, and as sent with the write that ended its record.
//! Records are opened one by one, each with the stamps of the read that completed it, and a
//! write takes no more than fits into one record.

mod record_edges;
mod settings;

use std::io::{self, IoSlice, Read as _, Write as _};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use crate::journal::HttpVersion;
use crate::moment::{Departure, Read};
use crate::socket::Socket;
use crate::transport::receive;
use record_edges::RecordEdges;
use settings::HTTP_2;

pub(crate) use settings::{Clients, Offer, server_config, server_config_of};
pub use settings::{Identity, TlsError, TlsSettings};

/// Most ciphertext read at once: a little more than the longest record.
const READ_AT_ONCE: usize = 17 * 1024;

/// Most plaintext that one record holds.
const RECORD_PLAINTEXT: usize = 16 * 1024;

/// One side of a TLS connection.
#[derive(Debug)]
pub(crate) struct TlsSession {
    tls: Connection,
    edges: RecordEdges,
    /// Ciphertext that has been read but not opened.
    unopened: Unopened,
    /// The read that brought the latest ciphertext.
    read: Option<Read>,
    /// Whether the latest record ends with the last byte of that read.
    record_ends_read: bool,
    /// How many records that read has completed so far.
    records_in_read: u32,
    /// Plaintext of the latest record that has not been taken.
    plaintext_left: usize,
    /// Plaintext taken in whose ciphertext has not all left.
    in_flight: Option<usize>,
    /// The latest write to the socket.
    latest_write: Option<Departure>,
    /// Bytes written to the socket since the connection was made.
    sent: u64,
    close_notified: bool,
}

impl TlsSession {
    /// The server's side, towards a client; `early` is what came from it already, and `sent` how
    /// much has been sent to it.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub(crate) fn accept(
        config: Arc<ServerConfig>,
        early: Option<(Vec<u8>, Read)>,
        sent: u64,
    ) -> io::Result<Self> {
        let tls = ServerConnection::new(config).map_err(io::Error::other)?;
        let mut session = Self::new(tls.into(), sent);
        if let Some((bytes, read)) = early {
            session.take_in(bytes, read);
        }
        Ok(session)
    }

    /// The client's side, towards a server of that name.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub(crate) fn connect(
        config: Arc<ClientConfig>,
        server: ServerName<'static>,
    ) -> io::Result<Self> {
        let tls = ClientConnection::new(config, server).map_err(io::Error::other)?;
        Ok(Self::new(tls.into(), 0))
    }

    fn new(tls: Connection, sent: u64) -> Self {
        Self {
            tls,
            edges: RecordEdges::default(),
            unopened: Unopened::default(),
            read: None,
            record_ends_read: false,
            records_in_read: 0,
            plaintext_left: 0,
            in_flight: None,
            latest_write: None,
            sent,
            close_notified: false,
        }
    }

    /// The version of HTTP that the peers agreed on; HTTP/1 if they did not speak of it.
    pub(crate) fn agreed_on(&self) -> HttpVersion {
        match self.tls.alpn_protocol() {
            Some(HTTP_2) => HttpVersion::Http2,
            Some(_) | None => HttpVersion::Http1,
        }
    }

    /// Bytes written to the socket since the connection was made.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether plaintext has been taken in that has not all left yet.
    pub(crate) fn is_sending(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Shakes hands; ready with the read that brought the peer's last handshake message.
    pub(crate) fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
    ) -> Poll<io::Result<Read>> {
        loop {
            ready!(self.poll_flush(cx, socket))?;
            if !self.tls.is_handshaking() {
                let read = self.read.ok_or(io::ErrorKind::UnexpectedEof)?;
                return Poll::Ready(Ok(self.told_by(read)));
            }
            if self.unopened.is_empty() && ready!(self.poll_ciphertext(cx, socket))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            if let Err(error) = self.open_record() {
                // The alert that says why is worth an attempt.
                return match self.poll_flush(cx, socket) {
                    Poll::Ready(_) | Poll::Pending => Poll::Ready(Err(error)),
                };
            }
        }
    }

    /// Reads plaintext: how many bytes, 0 at the end, and by which read of the socket.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
        space: &mut [u8],
    ) -> Poll<io::Result<(usize, Read)>> {
        loop {
            match self.tls.reader().read(space) {
                Ok(count) => {
                    self.plaintext_left = self.plaintext_left.saturating_sub(count);
                    let read = self.read.ok_or(io::ErrorKind::UnexpectedEof)?;
                    return Poll::Ready(Ok((count, self.told_by(read))));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return self.end_without_notice(error),
            }
            if self.unopened.is_empty() && ready!(self.poll_ciphertext(cx, socket))? == 0 {
                // Makes the reader say what it makes of the end.
                self.tls.read_tls(&mut io::empty())?;
                self.tls.process_new_packets().map_err(io::Error::other)?;
                continue;
            }
            self.open_record()?;
            // Answers to what the peer's TLS asked for go out when they can.
            if let Poll::Ready(Err(error)) = self.poll_flush(cx, socket) {
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Writes plaintext, at most one record: how much, and when the last of its ciphertext left.
    /// While it is pending the same bytes must be given again.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<(usize, Departure)>> {
        loop {
            ready!(self.poll_flush(cx, socket))?;
            if let (Some(taken), Some(when)) = (self.in_flight, self.latest_write) {
                self.in_flight = None;
                return Poll::Ready(Ok((taken, when)));
            }
            let mut taken = 0;
            for piece in bytes {
                let room = RECORD_PLAINTEXT - taken;
                let part = piece.get(..room.min(piece.len())).unwrap_or_default();
                taken += self.tls.writer().write(part)?;
            }
            self.in_flight = Some(taken);
        }
    }

    /// Tells the peer that no more will come.
    pub(crate) fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
    ) -> Poll<io::Result<()>> {
        if !self.close_notified {
            self.close_notified = true;
            self.tls.send_close_notify();
        }
        self.poll_flush(cx, socket)
    }

    /// Looks for the end of what the peer sends while nobody reads.
    pub(crate) fn poll_end(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
    ) -> Poll<io::Result<Read>> {
        while self.plaintext_left == 0 {
            if self.unopened.is_empty() && ready!(self.poll_ciphertext(cx, socket))? == 0 {
                return Poll::Ready(self.read.ok_or(io::ErrorKind::UnexpectedEof.into()));
            }
            let opened = self.open_record()?;
            if opened.peer_has_closed() {
                return Poll::Ready(self.read.ok_or(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        // What has come waits for whoever reads next.
        Poll::Pending
    }

    /// What the latest read tells of plaintext that is taken now.
    fn told_by(&self, read: Read) -> Read {
        let ends_read = self.plaintext_left == 0 && self.record_ends_read;
        Read {
            drained: read.drained && ends_read,
            together: self.records_in_read == 1 && self.record_ends_read,
            ..read
        }
    }

    /// The peer's connection ended without the notice that TLS wants. A client's requests tell
    /// their own ends, a server's response may not: it may have been cut short by anybody.
    fn end_without_notice(&self, error: io::Error) -> Poll<io::Result<(usize, Read)>> {
        match (&self.tls, self.read) {
            (Connection::Server(_), Some(read)) => Poll::Ready(Ok((0, read))),
            _ => Poll::Ready(Err(error)),
        }
    }

    fn poll_ciphertext(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
    ) -> Poll<io::Result<usize>> {
        // An idle connection keeps no buffer.
        ready!(socket.poll_read_ready(cx))?;
        let mut space = vec![0; READ_AT_ONCE];
        let (count, read) = ready!(receive(socket, cx, &mut space))?;
        space.truncate(count);
        self.take_in(space, read);
        Poll::Ready(Ok(count))
    }

    fn take_in(&mut self, bytes: Vec<u8>, read: Read) {
        self.unopened = Unopened { bytes, opened: 0 };
        self.read = Some(read);
        self.record_ends_read = false;
        self.records_in_read = 0;
    }

    /// Opens the next record, or what there is of it.
    fn open_record(&mut self) -> io::Result<rustls::IoState> {
        let rest = self.unopened.rest();
        let (length, complete) = self.edges.next(rest);
        let mut record = rest.get(..length).unwrap_or_default();
        while !record.is_empty() {
            if self.tls.read_tls(&mut record)? == 0 {
                // Nothing counts after the peer's notice of its end.
                break;
            }
        }
        self.unopened.opened += length;
        let state = self.tls.process_new_packets().map_err(io::Error::other)?;
        self.plaintext_left = state.plaintext_bytes_to_read();
        if complete {
            self.records_in_read += 1;
        }
        self.record_ends_read = complete && self.unopened.is_empty();
        if self.unopened.is_empty() {
            self.unopened = Unopened::default();
        }
        Ok(state)
    }

    /// Writes out the ciphertext that waits.
    fn poll_flush(&mut self, cx: &mut Context<'_>, socket: &Socket) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            ready!(socket.poll_write_ready(cx))?;
            let mut out = Out {
                socket,
                latest: None,
            };
            match self.tls.write_tls(&mut out) {
                Ok(count) => {
                    self.sent = self.sent.saturating_add(count as u64);
                    self.latest_write = out.latest;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Ciphertext on its way to the session.
#[derive(Debug, Default)]
struct Unopened {
    bytes: Vec<u8>,
    opened: usize,
}

impl Unopened {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.opened..).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }
}

/// The socket as the session writes to it, with the time of the latest write.
struct Out<'a> {
    socket: &'a Socket,
    latest: Option<Departure>,
}

impl io::Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let before_ns = skewtap_sockstamp::realtime_ns();
        let written = self.socket.try_write_vectored(bytes)?;
        self.latest = Some(Departure {
            before_ns,
            after_ns: skewtap_sockstamp::realtime_ns(),
        });
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
