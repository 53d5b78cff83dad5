//! The layers that a request passes, in order, on one screen.

use std::cell::RefCell;
use std::rc::Rc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use tower::{Service as _, ServiceBuilder};

use crate::connection::Connection;
use crate::exchange_error::ExchangeError;
use crate::relayed_body::ResponseBody;
use crate::upstream::Upstream;
use crate::{exchange_layer, hop_by_hop, reply_on_error, trace_context};

/// The service of one client connection. Stamps are taken below it, by the sockets.
pub(crate) fn of(
    connection: &Rc<Connection>,
) -> impl hyper::service::HttpService<Incoming, ResBody = ResponseBody, Error = ExchangeError> + use<>
{
    let [exchange, reply, trace, up] = std::array::from_fn(|_| Rc::clone(connection));
    let stack = ServiceBuilder::new()
        // Outermost, so that every request has a record, also one the proxy refuses.
        .map_request(move |request| exchange_layer::open(&exchange, request))
        // Turns whatever goes wrong further in into an answer.
        .map_result(move |result| reply_on_error::answer(&reply, result))
        // Ties the exchange to its trace, before any header is changed.
        .map_request(move |request| with_trace(&trace, request))
        // Takes out what concerns one hop only, in both directions.
        .map_request(without_hop_headers)
        .map_response(|mut response: Response<ResponseBody>| {
            hop_by_hop::strip(response.headers_mut());
            response
        })
        // Decides where the request goes, connects and sends.
        .service(Upstream::new(up));
    let stack = RefCell::new(stack);
    // All layers are always ready.
    service_fn(move |request| stack.borrow_mut().call(request))
}

fn with_trace(connection: &Connection, mut request: Request<Incoming>) -> Request<Incoming> {
    if let Some(context) = trace_context::read_or_add(request.headers_mut()) {
        connection.journal.borrow_mut().note_trace(context);
    }
    request
}

fn without_hop_headers(mut request: Request<Incoming>) -> Request<Incoming> {
    hop_by_hop::strip(request.headers_mut());
    request
}
