//! A server made of hyper, as Rust programs have it.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use super::certificates::Certificates;

/// Serves until it is dropped.
pub(super) struct HyperServer {
    pub(super) port: u16,
    _runtime: Runtime,
}

impl HyperServer {
    pub(super) fn start(folder: &Path, certificates: Option<&Certificates>) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = certificates.map(acceptor);
        let folder: Arc<PathBuf> = Arc::new(folder.to_owned());
        runtime.spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (acceptor, folder) = (acceptor.clone(), Arc::clone(&folder));
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(socket, folder).await,
                        // A client that gives up says so itself.
                        Some(acceptor) => {
                            if let Ok(socket) = acceptor.accept(socket).await {
                                serve(socket, folder).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            port,
            _runtime: runtime,
        }
    }
}

fn acceptor(certificates: &Certificates) -> TlsAcceptor {
    let chain = CertificateDer::from_pem_file(certificates.certificate()).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificates.key()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(socket: impl AsyncRead + AsyncWrite + Unpin, folder: Arc<PathBuf>) {
    let service = service_fn(|request| {
        let folder = Arc::clone(&folder);
        async move { Ok::<_, Infallible>(answer(&folder, request).await) }
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    // A client that breaks off says so itself.
    let (Ok(()) | Err(_)) = serving.await;
}

async fn answer(folder: &Path, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
    let path = request.uri().path().trim_start_matches('/').to_owned();
    if request.method() == Method::PUT {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        fs::write(folder.join(path), body).unwrap();
        let mut taken = Response::new(Full::default().boxed());
        *taken.status_mut() = StatusCode::CREATED;
        return taken;
    }
    let chunked = path.starts_with("chunked/");
    let body = fs::read(folder.join(path.replacen("chunked/", "files/", 1))).unwrap();
    if !chunked {
        return Response::new(Full::from(body).boxed());
    }
    let pieces: Vec<_> = body.chunks(16_384).map(Bytes::copy_from_slice).collect();
    let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece)));
    Response::new(StreamBody::new(tokio_stream::iter(frames)).boxed())
}
