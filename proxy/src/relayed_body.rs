//! Bodies on their way through, one piece at a time.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::exchange_error::HttpError;
use crate::http2::StreamBody;
use crate::journal::Journal;

/// A body as it comes in from either side.
pub(crate) enum Pieces {
    /// Of a message of HTTP/1.
    Message(Incoming),
    /// Of a stream of HTTP/2.
    Stream(StreamBody),
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        match &mut *self {
            Self::Message(incoming) => {
                let polled = Pin::new(incoming).poll_frame(cx);
                polled.map_err(HttpError::from)
            }
            Self::Stream(stream) => Pin::new(stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Message(incoming) => incoming.is_end_stream(),
            Self::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Message(incoming) => incoming.size_hint(),
            Self::Stream(stream) => stream.size_hint(),
        }
    }
}

/// A request's body on its way to the server.
///
/// It is read as soon as the head is on its way, whether the client waits for `100 Continue` or
/// not: the pieces go on when the client sends them, and whether the client is told to send
/// them is between the client and the server.
pub(crate) struct RequestBody {
    incoming: Pieces,
    /// Set while the client may wait for `100 Continue`.
    unasked: Option<Rc<RefCell<Journal>>>,
}

impl RequestBody {
    /// The body of a request; `expects` says whether the client may wait for `100 Continue`.
    pub(crate) fn new(incoming: Incoming, expects: bool, journal: &Rc<RefCell<Journal>>) -> Self {
        Self {
            incoming: Pieces::Message(incoming),
            unasked: expects.then(|| Rc::clone(journal)),
        }
    }

    /// The body of a request that came on a stream.
    pub(crate) fn of_stream(stream: StreamBody) -> Self {
        Self {
            incoming: Pieces::Stream(stream),
            unasked: None,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Some(journal) = &self.unasked {
            // The first read makes hyper write a `100 Continue` of its own, which the socket
            // takes out. It finds it only between responses. The connection's task comes
            // back here after every write.
            if !journal.borrow().between_responses() {
                return Poll::Pending;
            }
            self.unasked = None;
        }
        Pin::new(&mut self.incoming).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// The body of a response on its way to the client.
pub(crate) enum ResponseBody {
    /// The server's, under the framing that its head announces.
    Server {
        /// The pieces.
        incoming: Pieces,
        /// Whether the head gives the length, so that hyper must not work it out itself.
        announced: bool,
    },
    /// The proxy's own.
    Own(Option<Bytes>),
}

impl ResponseBody {
    /// The server's response, with its body to be relayed.
    pub(crate) fn of_server(response: Response<Pieces>) -> Response<Self> {
        let mut response = response;
        if response.headers().contains_key(TRANSFER_ENCODING) {
            // The coding decides where the body ends; a length beside it is another story.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        let announced = response.headers().contains_key(CONTENT_LENGTH);
        response.map(|incoming| Self::Server {
            incoming,
            announced,
        })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        match &mut *self {
            Self::Server { incoming, .. } => Pin::new(incoming).poll_frame(cx),
            Self::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            // Asked before the head is written: an empty body would lose the length that
            // the server gave, as in 304, or move it to the end of the head.
            Self::Server {
                announced: true, ..
            } => false,
            Self::Server { incoming, .. } => incoming.is_end_stream(),
            Self::Own(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Server {
                announced: true, ..
            } => SizeHint::default(),
            Self::Server { incoming, .. } => incoming.size_hint(),
            Self::Own(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
    }
}
