//! One stream of a client, from its request to the end of its response.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response};
use skewtap_core::exchange::Outcome;

use super::asked::{Answer, StreamAnswer};
use super::head;
use super::message_server::MessageAnswer;
use super::pump::{Pump, PumpError};
use super::serve::Client;
use super::servers::StreamServer;
use super::stream_body::StreamBody;
use crate::exchange_error::{ExchangeError, HttpError};
use crate::relayed_body::{Pieces, RequestBody, ResponseBody};
use crate::{hop_by_hop, reply_on_error};

/// Why a stream's exchange went no further.
enum Cut {
    /// The client took it back, or is gone; with its reason if it gave one.
    ByClient(Option<Reason>),
    /// There is no response.
    Unanswered(ExchangeError),
    /// The response broke off.
    BrokenOff(HttpError),
}

/// Serves the request on one stream; its exchange has begun.
pub(super) async fn serve(
    client: Rc<Client>,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
) {
    let number = respond.stream_id().as_u32();
    let served = Served(client, number);
    let client = &served.0;
    let mut respond = respond;
    let (asked, response) = match response_to(client, number, request, &mut respond).await {
        Ok(got) => got,
        Err(Cut::Unanswered(error)) => return answer(client, number, &error, &mut respond),
        Err(Cut::ByClient(_) | Cut::BrokenOff(_)) => {
            client.fault(number, Outcome::ClientGone);
            return;
        }
    };
    relay(client, number, (asked, response), respond).await;
}

/// Sends the request on and waits for the final response, passing on what comes before it.
async fn response_to(
    client: &Rc<Client>,
    number: u32,
    request: Request<RecvStream>,
    respond: &mut SendResponse<Bytes>,
) -> Result<(Asked, Response<Pieces>), Cut> {
    let mut asked = tokio::select! {
        biased;
        reason = poll_fn(|cx| respond.poll_reset(cx)) => return Err(Cut::ByClient(reason.ok())),
        asked = ask(client, number, request) => asked.map_err(Cut::Unanswered)?,
    };
    loop {
        let came = tokio::select! {
            biased;
            reason = poll_fn(|cx| respond.poll_reset(cx)) => {
                asked.cancel(reason.as_ref().ok().copied());
                return Err(Cut::ByClient(reason.ok()));
            }
            came = poll_fn(|cx| asked.poll_answer(cx)) => came.map_err(Cut::Unanswered)?,
        };
        let mut journal = client.journal.borrow_mut();
        journal.answered(number, came.status());
        match came {
            Answer::Final(response) => return Ok((asked, response)),
            Answer::Interim(mut interim) => {
                journal.responds(number, interim.status().as_u16());
                drop(journal);
                head::response_to_stream(&mut interim);
                let sent = respond.send_informational(interim);
                sent.map_err(|error| Cut::ByClient(error.reason()))?;
            }
        }
    }
}

/// Finds the server and hands the request to it.
async fn ask(
    client: &Rc<Client>,
    number: u32,
    request: Request<RecvStream>,
) -> Result<Asked, ExchangeError> {
    let (mut head, body) = request.into_parts();
    head::check(&head).map_err(ExchangeError::Head)?;
    if head.method == Method::CONNECT {
        return Err(ExchangeError::TunnelInStream);
    }
    hop_by_hop::strip(&mut head.headers);
    let target = client.target(&head)?;
    let body = StreamBody::new(body);
    match client.servers.stream_server(&target).await? {
        Some(server) => {
            let head = head::request_to_stream(head, (), &target);
            ask_on_stream(client, number, (head, body), server)
        }
        None => {
            let request = head::request_to_message(head, RequestBody::of_stream(body));
            let answer = MessageAnswer::ask(&client.servers, target, request, number);
            Ok(Asked::Message(answer))
        }
    }
}

fn ask_on_stream(
    client: &Client,
    number: u32,
    (head, body): (Request<()>, StreamBody),
    server: StreamServer,
) -> Result<Asked, ExchangeError> {
    let mut sender = server.sender;
    let ends = http_body::Body::is_end_stream(&body);
    let (answer, out) = sender
        .send_request(head, ends)
        .map_err(ExchangeError::from_h2)?;
    let there = Some(answer.stream_id().as_u32());
    let mut journal = client.journal.borrow_mut();
    journal.sent_up(number, server.number, there);
    Ok(Asked::Stream {
        answer: StreamAnswer::new(answer),
        upload: (!ends).then(|| Pump::new(body)),
        out,
    })
}

/// A request on its way.
enum Asked {
    /// On a stream, with the body that has still to be sent.
    Stream {
        answer: StreamAnswer,
        upload: Option<Pump<StreamBody>>,
        out: SendStream<Bytes>,
    },
    /// As a message of HTTP/1, whose connection sends the body.
    Message(MessageAnswer),
}

impl Asked {
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer, ExchangeError>> {
        if let Poll::Ready(Err(error)) = self.poll_upload(cx) {
            return Poll::Ready(Err(ExchangeError::ClientGone(error)));
        }
        match self {
            Self::Stream { answer, .. } => answer.poll(cx),
            Self::Message(answer) => answer.poll(cx),
        }
    }

    /// Sends what there is of the request's body; an error is of where it comes from.
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), HttpError>> {
        let Self::Stream { upload, out, .. } = self else {
            return Poll::Ready(Ok(()));
        };
        let Some(pump) = upload else {
            return Poll::Ready(Ok(()));
        };
        let ended = std::task::ready!(pump.poll(cx, out));
        // A server that wants no more of it has told so on its own side of the stream.
        *upload = None;
        Poll::Ready(match ended {
            Err(PumpError::Source(error)) => Err(error),
            Ok(()) | Err(PumpError::Sink(_)) => Ok(()),
        })
    }

    /// Takes the request back, for the client's reason.
    fn cancel(&mut self, reason: Option<Reason>) {
        if let Self::Stream { out, .. } = self {
            out.send_reset(reason.unwrap_or(Reason::CANCEL));
        }
    }

    /// The response has come to its end.
    fn finished(&mut self) {
        if let Self::Message(answer) = self {
            answer.finished();
        }
    }
}

/// Passes the final response on, and what is left of the request.
async fn relay(
    client: &Client,
    number: u32,
    (mut asked, response): (Asked, Response<Pieces>),
    mut respond: SendResponse<Bytes>,
) {
    let (mut parts, body) = response.into_parts();
    hop_by_hop::strip(&mut parts.headers);
    let ends = http_body::Body::is_end_stream(&body);
    let status = parts.status.as_u16();
    let mut head = Response::from_parts(parts, ());
    head::response_to_stream(&mut head);
    client.journal.borrow_mut().responds(number, status);
    let mut out = match respond.send_response(head, ends) {
        Ok(out) => out,
        Err(error) => {
            asked.cancel(error.reason());
            return client.fault(number, Outcome::ClientGone);
        }
    };
    let mut download = (!ends).then(|| Pump::new(body));
    if ends {
        asked.finished();
    }
    let carried = poll_fn(|cx| poll_both(cx, &mut asked, &mut download, &mut out)).await;
    match carried {
        Ok(()) | Err(Cut::Unanswered(_)) => {}
        Err(Cut::ByClient(reason)) => {
            client.fault(number, Outcome::ClientGone);
            asked.cancel(reason);
        }
        Err(Cut::BrokenOff(error)) => {
            client.fault(number, Outcome::UpstreamBroken);
            out.send_reset(reason_of(&error));
        }
    }
}

fn poll_both(
    cx: &mut Context<'_>,
    asked: &mut Asked,
    download: &mut Option<Pump<Pieces>>,
    out: &mut SendStream<Bytes>,
) -> Poll<Result<(), Cut>> {
    let uploaded = match asked.poll_upload(cx) {
        Poll::Ready(Err(error)) => {
            let HttpError::Http2(error) = error else {
                return Poll::Ready(Err(Cut::ByClient(None)));
            };
            return Poll::Ready(Err(Cut::ByClient(error.reason())));
        }
        Poll::Ready(Ok(())) => true,
        Poll::Pending => false,
    };
    if let Some(pump) = download {
        match pump.poll(cx, out) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(PumpError::Source(error))) => {
                return Poll::Ready(Err(Cut::BrokenOff(error)));
            }
            Poll::Ready(Err(PumpError::Sink(reason))) => {
                return Poll::Ready(Err(Cut::ByClient(reason)));
            }
            Poll::Ready(Ok(())) => asked.finished(),
        }
        *download = None;
    }
    if uploaded {
        Poll::Ready(Ok(()))
    } else {
        Poll::Pending
    }
}

/// Why a response that broke off is reset towards the client.
fn reason_of(error: &HttpError) -> Reason {
    let HttpError::Http2(error) = error else {
        return Reason::INTERNAL_ERROR;
    };
    let passed_on = error
        .reason()
        .filter(|_| error.is_reset() && error.is_remote());
    passed_on.unwrap_or(Reason::INTERNAL_ERROR)
}

/// Answers in the server's place.
fn answer(client: &Client, number: u32, error: &ExchangeError, respond: &mut SendResponse<Bytes>) {
    let reset = match error {
        ExchangeError::Reset(reason) => Some(*reason),
        // The client may ask again at once: nobody has looked at its request.
        ExchangeError::Closing(_) => Some(Reason::REFUSED_STREAM),
        ExchangeError::ClientGone(_) => Some(Reason::CANCEL),
        _ => None,
    };
    tracing::debug!(reason = error.reason(), %error, "stream answered by the proxy");
    if let Some(reset) = reset {
        client.fault(number, error.outcome());
        respond.send_reset(reset);
        return;
    }
    let mut journal = client.journal.borrow_mut();
    journal.answered_here(number, error.outcome());
    let (parts, body) = reply_on_error::own(error).into_parts();
    journal.responds(number, parts.status.as_u16());
    drop(journal);
    let mut head = Response::from_parts(parts, ());
    head::response_to_stream(&mut head);
    let ResponseBody::Own(text) = body else {
        return;
    };
    let sent = respond
        .send_response(head, false)
        .and_then(|mut out| out.send_data(text.unwrap_or_default(), true));
    if sent.is_err() {
        client.fault(number, Outcome::ClientGone);
    }
}

/// Tells the journal that a stream has been served, also when its task is dropped.
struct Served(Rc<Client>, u32);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.journal.borrow_mut().served(self.1);
    }
}
