//! A body on its way out on a stream, no faster than its receiver takes it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::SendStream;
use http_body::Body;

use crate::exchange_error::HttpError;

/// Which side of a body failed.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// Where it comes from.
    Source(HttpError),
    /// Where it goes; the reason if its receiver gave one.
    Sink(Option<h2::Reason>),
}

/// A body, with what of it waits for room on the stream.
pub(crate) struct Pump<B> {
    body: B,
    /// A piece, and whether nothing follows it.
    held: Option<(Bytes, bool)>,
}

impl<B: Body<Data = Bytes, Error = HttpError> + Unpin> Pump<B> {
    pub(crate) fn new(body: B) -> Self {
        Self { body, held: None }
    }

    /// Moves what there is; ready when all of the body has been handed on.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut SendStream<Bytes>,
    ) -> Poll<Result<(), PumpError>> {
        loop {
            if let Some((data, last)) = &mut self.held {
                ready!(poll_piece(cx, out, data, *last))?;
                if *last {
                    return Poll::Ready(Ok(()));
                }
                self.held = None;
            }
            if let Poll::Ready(reset) = out.poll_reset(cx) {
                return Poll::Ready(Err(PumpError::Sink(reset.ok())));
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => {
                    self.held = Some((Bytes::new(), true));
                    continue;
                }
                Some(frame) => frame.map_err(PumpError::Source)?,
            };
            match frame.into_data() {
                Ok(data) => self.held = Some((data, self.body.is_end_stream())),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    let sent = out.send_trailers(trailers);
                    return Poll::Ready(sent.map_err(|error| PumpError::Sink(error.reason())));
                }
            }
        }
    }
}

/// Hands a piece on as far as there is room.
fn poll_piece(
    cx: &mut Context<'_>,
    out: &mut SendStream<Bytes>,
    data: &mut Bytes,
    last: bool,
) -> Poll<Result<(), PumpError>> {
    let failed = |error: h2::Error| PumpError::Sink(error.reason());
    while !data.is_empty() {
        out.reserve_capacity(data.len());
        if out.capacity() == 0 {
            match ready!(out.poll_capacity(cx)) {
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Poll::Ready(Err(failed(error))),
                None => return Poll::Ready(Err(PumpError::Sink(None))),
            }
        }
        let part = data.split_to(out.capacity().min(data.len()));
        let ends = last && data.is_empty();
        out.send_data(part, ends).map_err(failed)?;
        if ends {
            return Poll::Ready(Ok(()));
        }
    }
    if last {
        out.send_data(Bytes::new(), true).map_err(failed)?;
    }
    Poll::Ready(Ok(()))
}
