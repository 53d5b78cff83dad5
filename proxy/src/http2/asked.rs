//! A request on its way on a stream to a server, until its response comes.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use h2::client::ResponseFuture;
use http::Response;

use crate::exchange_error::ExchangeError;
use crate::http2::StreamBody;
use crate::relayed_body::Pieces;

/// What comes in answer to a request.
pub(crate) enum Answer {
    /// An interim response; more will come.
    Interim(Response<()>),
    /// The final response.
    Final(Response<Pieces>),
}

impl Answer {
    /// The status.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Interim(response) => response.status().as_u16(),
            Self::Final(response) => response.status().as_u16(),
        }
    }
}

/// The answer that comes on a stream.
pub(crate) struct StreamAnswer(ResponseFuture);

impl StreamAnswer {
    pub(crate) fn new(response: ResponseFuture) -> Self {
        Self(response)
    }

    /// Gives each interim response, then the final one.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer, ExchangeError>> {
        // Asked for the final response first, the library would throw interim ones away.
        match self.0.poll_informational(cx) {
            Poll::Ready(Some(Ok(interim))) => return Poll::Ready(Ok(Answer::Interim(interim))),
            // What went wrong is told below as well.
            Poll::Ready(Some(Err(_)) | None) => {}
            Poll::Pending => return Poll::Pending,
        }
        let response = ready!(Pin::new(&mut self.0).poll(cx));
        Poll::Ready(match response {
            Ok(response) => Ok(Answer::Final(
                response.map(|body| Pieces::Stream(StreamBody::new(body))),
            )),
            Err(error) => Err(ExchangeError::from_h2(error)),
        })
    }
}
