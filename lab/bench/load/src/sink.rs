//! Takes every request, acknowledges it and keeps nothing: an end for spans that costs little.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, server};
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

/// Flow-control windows that do not hold up senders, in bytes.
const WINDOW: u32 = 8 << 20;

/// Length of a gRPC message's own head.
const GRPC_HEAD: usize = 5;

/// An answer with an empty message: everything was taken.
const TAKEN: &[u8] = &[0; GRPC_HEAD];

/// Where the largest request so far is kept.
struct Keeper {
    file: Option<String>,
    largest: Cell<usize>,
}

/// Takes spans until it is ended. The largest request goes to the file `keep`.
///
/// # Errors
/// When the port cannot be opened.
pub(crate) async fn run(listen: SocketAddr, keep: Option<&str>) -> io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    let keeper = Rc::new(Keeper {
        file: keep.map(str::to_owned),
        largest: Cell::new(0),
    });
    LocalSet::new()
        .run_until(async move {
            loop {
                let (socket, _) = listener.accept().await?;
                socket.set_nodelay(true)?;
                let keeper = Rc::clone(&keeper);
                // A sender that leaves is no fault of the sink.
                tokio::task::spawn_local(async move { drop(connection(socket, keeper).await) });
            }
        })
        .await
}

async fn connection(socket: TcpStream, keeper: Rc<Keeper>) -> Result<(), h2::Error> {
    let mut requests = server::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake::<_, Bytes>(socket)
        .await?;
    while let Some(request) = requests.accept().await {
        let (request, answer) = request?;
        let keeper = Rc::clone(&keeper);
        tokio::task::spawn_local(async move { drop(take(request, answer, &keeper).await) });
    }
    Ok(())
}

async fn take(
    request: Request<RecvStream>,
    mut answer: SendResponse<Bytes>,
    keeper: &Keeper,
) -> Result<(), h2::Error> {
    let mut body = request.into_body();
    let mut kept = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        if keeper.file.is_some() {
            kept.extend_from_slice(&piece);
        }
    }
    if let Some(file) = &keeper.file
        && kept.len() > keeper.largest.get()
        && let Some(message) = kept.get(GRPC_HEAD..)
        && std::fs::write(file, message).is_ok()
    {
        keeper.largest.set(kept.len());
    }
    let mut head = Response::new(());
    head.headers_mut()
        .insert("content-type", HeaderValue::from_static("application/grpc"));
    let mut content = answer.send_response(head, false)?;
    content.send_data(Bytes::from_static(TAKEN), false)?;
    let status = HeaderValue::from_static("0");
    content.send_trailers(HeaderMap::from_iter([(
        http::HeaderName::from_static("grpc-status"),
        status,
    )]))
}
