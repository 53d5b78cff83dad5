//! Sending the request of an HTTP/1 client on as a stream.

use std::future::poll_fn;

use bytes::Bytes;
use http::{Request, Response};

use super::interim_responses_first;
use crate::connection::{Connection, Sender, Upload};
use crate::exchange_error::ExchangeError;
use crate::http2::{self, Answer, StreamAnswer};
use crate::relayed_body::{RequestBody, ResponseBody};
use crate::target::Target;

/// Gives the server's response; the connection's task sends the request's body.
///
/// # Errors
/// Why there is none.
pub(super) async fn send(
    connection: &Connection,
    sender: h2::client::SendRequest<Bytes>,
    request: Request<RequestBody>,
    target: &Target,
) -> Result<Response<ResponseBody>, ExchangeError> {
    let mut sender = sender;
    let (head, body) = request.into_parts();
    let request = http2::request_to_stream(head, (), target);
    let ends = http_body::Body::is_end_stream(&body);
    let (answer, stream) = sender
        .send_request(request, ends)
        .map_err(ExchangeError::from_h2)?;
    let number = answer.stream_id().as_u32();
    connection.journal.borrow_mut().sent_up_on(number);
    connection.return_sender(Sender::Streams(sender));
    connection.upload((!ends).then(|| Upload::new(body, stream)));
    let mut answer = StreamAnswer::new(answer);
    loop {
        let came = poll_fn(|cx| answer.poll(cx)).await?;
        note_answer(connection, &came);
        if let Answer::Final(response) = came {
            interim_responses_first(connection).await;
            let mut response = ResponseBody::of_server(response);
            http2::response_to_message(&mut response);
            return Ok(response);
        }
    }
}

fn note_answer(connection: &Connection, came: &Answer) {
    let mut journal = connection.journal.borrow_mut();
    journal.stream_responds(came.status());
    if let Answer::Interim(interim) = came {
        journal.relay_interim(&http2::interim_of_http1(interim));
    }
}
