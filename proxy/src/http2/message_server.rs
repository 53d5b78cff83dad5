//! A connection to a server that speaks HTTP/1, for one stream at a time.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::asked::Answer;
use super::servers::Servers;
use crate::exchange_error::ExchangeError;
use crate::relayed_body::{Pieces, RequestBody};
use crate::target::Target;

/// Most interim responses of one exchange that wait to be passed on; HTTP allows to leave any out.
const INTERIMS_CAP: usize = 16;

/// A connection that no stream uses.
pub(super) struct Idle {
    /// What the journal knows it by.
    pub(super) number: u64,
    pub(super) target: Target,
    pub(super) sender: SendRequest<RequestBody>,
    pub(super) driver: AbortHandle,
}

/// A connection that a stream uses: closed with it, unless it was given back.
pub(super) struct InUse {
    servers: Rc<Servers>,
    idle: Option<Idle>,
}

impl InUse {
    pub(super) fn new(servers: Rc<Servers>, idle: Idle) -> Self {
        Self {
            servers,
            idle: Some(idle),
        }
    }

    /// Lets other streams use it.
    pub(super) fn give_back(mut self) {
        if let Some(idle) = self.idle.take() {
            self.servers.keep(idle);
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(idle) = self.idle.take() {
            // In the middle of an exchange nothing else would end it there.
            idle.driver.abort();
        }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<(Response<Incoming>, InUse), ExchangeError>>>>;

/// The answer that comes as a message.
pub(super) struct MessageAnswer {
    answering: Answering,
    interims: mpsc::Receiver<Response<()>>,
    /// Where the connection is put once the response has begun.
    in_use: Option<InUse>,
}

impl MessageAnswer {
    /// Sends a request on, for the stream of that number.
    pub(super) fn ask(
        servers: &Rc<Servers>,
        target: Target,
        request: Request<RequestBody>,
        stream: u32,
    ) -> Self {
        let (send, interims) = mpsc::channel(INTERIMS_CAP);
        let mut request = request;
        hyper::ext::on_informational(&mut request, move |response| {
            let mut interim = Response::new(());
            *interim.status_mut() = response.status();
            *interim.headers_mut() = response.headers().clone();
            if send.try_send(interim).is_err() {
                tracing::warn!("interim response dropped, client does not read");
            }
        });
        let asking = ask(Rc::clone(servers), target, request, stream);
        Self {
            answering: Box::pin(asking),
            interims,
            in_use: None,
        }
    }

    /// Gives each interim response, then the final one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer, ExchangeError>> {
        if let Poll::Ready(Some(interim)) = self.interims.poll_recv(cx) {
            return Poll::Ready(Ok(Answer::Interim(interim)));
        }
        let (response, in_use) = ready!(self.answering.as_mut().poll(cx))?;
        self.in_use = Some(in_use);
        Poll::Ready(Ok(Answer::Final(response.map(Pieces::Message))))
    }

    /// Gives the connection back once the response has come to its end.
    pub(super) fn finished(&mut self) {
        if let Some(in_use) = self.in_use.take() {
            in_use.give_back();
        }
    }
}

async fn ask(
    servers: Rc<Servers>,
    target: Target,
    request: Request<RequestBody>,
    stream: u32,
) -> Result<(Response<Incoming>, InUse), ExchangeError> {
    let mut request = request;
    loop {
        let (idle, fresh) = servers.message_server(&target).await?;
        let mut in_use = InUse::new(Rc::clone(&servers), idle);
        let Some(idle) = &mut in_use.idle else {
            return Err(ExchangeError::Unreachable(
                std::io::ErrorKind::NotConnected.into(),
            ));
        };
        let journal: &RefCell<_> = &servers.journal;
        journal.borrow_mut().sent_up(stream, idle.number, None);
        match idle.sender.try_send_request(request).await {
            Ok(response) => return Ok((response, in_use)),
            Err(mut refused) => match refused.take_message() {
                // The server closed between two exchanges, and no byte of this one has left.
                Some(unsent) if !fresh => request = unsent,
                _ => return Err(ExchangeError::from_hyper(refused.into_error())),
            },
        }
    }
}
