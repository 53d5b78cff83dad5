//! A body that comes in on a stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};

use crate::exchange_error::HttpError;

/// The body of a stream. Its sender may send as much again as a piece had once the next is asked
/// for, so whoever takes the body sets its pace.
pub(crate) struct StreamBody {
    stream: RecvStream,
    /// Bytes of the latest piece.
    taken: usize,
    /// Only trailers can still come.
    data_ended: bool,
}

impl StreamBody {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self {
            stream,
            taken: 0,
            data_ended: false,
        }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let taken = std::mem::take(&mut self.taken);
        if taken > 0 {
            self.stream.flow_control().release_capacity(taken)?;
        }
        let polled = ready!(self.stream.poll_data(cx));
        if let Some(Ok(data)) = &polled {
            self.taken = data.len();
        }
        Poll::Ready(polled)
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if !self.data_ended {
            match ready!(self.poll_data(cx)) {
                Some(data) => return Poll::Ready(Some(data.map(Frame::data).map_err(Into::into))),
                None => self.data_ended = true,
            }
        }
        let trailers = ready!(self.stream.poll_trailers(cx));
        let frame = trailers.map(|trailers| trailers.map(Frame::trailers));
        Poll::Ready(frame.map_err(HttpError::from).transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_end_stream() {
            SizeHint::with_exact(0)
        } else {
            SizeHint::default()
        }
    }
}
