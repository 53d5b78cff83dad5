//! gRPC through the proxy: all four kinds of call, errors, deadlines and cancelled calls.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::uri::PathAndQuery;
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value};
use skewtap_core::exchange::Outcome;
use skewtap_core::milestone::Milestone;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::harness::{PATIENCE, Running, config};
use crate::streams::{run, until};

type Codec = ProstCodec<AnyValue, AnyValue>;
type Words = Pin<Box<dyn Stream<Item = Result<AnyValue, Status>> + Send>>;

fn word(text: impl Into<String>) -> AnyValue {
    AnyValue {
        value: Some(Value::StringValue(text.into())),
    }
}

fn text(word: &AnyValue) -> String {
    match &word.value {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("{other:?} is no word"),
    }
}

/// A service with one method of each kind, and some that go wrong.
#[derive(Clone, Default)]
struct Service {
    /// Whether an endless call has been given up.
    given_up: Arc<AtomicBool>,
}

struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl NamedService for Service {
    const NAME: &'static str = "test.Words";
}

impl tower::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let given_up = Arc::clone(&self.given_up);
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(Codec::default());
            Ok(match request.uri().path() {
                "/test.Words/Unary" => grpc.unary(service_fn(unary), request).await,
                "/test.Words/Collect" => grpc.client_streaming(service_fn(collect), request).await,
                "/test.Words/Spread" => grpc.server_streaming(service_fn(spread), request).await,
                "/test.Words/Talk" => grpc.streaming(service_fn(talk), request).await,
                "/test.Words/Endless" => {
                    let endless =
                        service_fn(move |_| std::future::ready(endless(Arc::clone(&given_up))));
                    grpc.server_streaming(endless, request).await
                }
                other => panic!("no method {other}"),
            })
        })
    }
}

async fn unary(request: Request<AnyValue>) -> Result<Response<AnyValue>, Status> {
    assert_eq!(request.metadata().get("x-caller").unwrap(), "test");
    match text(request.get_ref()).as_str() {
        "unknown" => Err(Status::not_found("no such word")),
        "slow" => {
            tokio::time::sleep(PATIENCE).await;
            Err(Status::internal("too late"))
        }
        other => Ok(Response::new(word(format!("{other}!")))),
    }
}

async fn collect(request: Request<Streaming<AnyValue>>) -> Result<Response<AnyValue>, Status> {
    let mut words = request.into_inner();
    let mut all = Vec::new();
    while let Some(next) = words.next().await {
        all.push(text(&next?));
    }
    Ok(Response::new(word(all.join(" "))))
}

async fn spread(request: Request<AnyValue>) -> Result<Response<Words>, Status> {
    let words = text(request.get_ref());
    let words: Vec<_> = words.split(' ').map(|part| Ok(word(part))).collect();
    // What comes after the last word is in the trailers.
    let end = [Err(Status::out_of_range("no more words"))];
    let words = tokio_stream::iter(words).chain(tokio_stream::iter(end));
    Ok(Response::new(Box::pin(words)))
}

async fn talk(request: Request<Streaming<AnyValue>>) -> Result<Response<Words>, Status> {
    let answers = request
        .into_inner()
        .map(|next| Ok(word(format!("{}?", text(&next?)))));
    Ok(Response::new(Box::pin(answers)))
}

fn endless(given_up: Arc<AtomicBool>) -> Result<Response<Words>, Status> {
    let guard = GivenUp(given_up);
    let words = tokio_stream::iter(0..).throttle(Duration::from_millis(5));
    let words = words.map(move |number: u64| {
        let _held = &guard;
        Ok(word(number.to_string()))
    });
    Ok(Response::new(Box::pin(words)))
}

async fn start(service: Service) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    address
}

struct Caller(tonic::client::Grpc<Channel>);

impl Caller {
    fn new(proxy: &Running) -> Self {
        let url = format!("http://{}", proxy.addresses.traffic);
        let channel = Endpoint::from_shared(url).unwrap().connect_lazy();
        Self(tonic::client::Grpc::new(channel))
    }

    async fn ready(&mut self) -> &mut tonic::client::Grpc<Channel> {
        self.0.ready().await.unwrap();
        &mut self.0
    }

    async fn unary(&mut self, text: &str, timeout: Option<Duration>) -> Result<String, Status> {
        let mut request = Request::new(word(text));
        request
            .metadata_mut()
            .insert("x-caller", "test".parse().unwrap());
        if let Some(timeout) = timeout {
            request.set_timeout(timeout);
        }
        let path = PathAndQuery::from_static("/test.Words/Unary");
        let answer = self
            .ready()
            .await
            .unary(request, path, Codec::default())
            .await;
        answer.map(|word| self::text(word.get_ref()))
    }
}

#[test]
fn calls_of_all_four_kinds_go_through() {
    run(async {
        let proxy = Running::start(config(start(Service::default()).await));
        let mut caller = Caller::new(&proxy);
        assert_eq!(caller.unary("hello", None).await.unwrap(), "hello!");

        let path = PathAndQuery::from_static("/test.Words/Collect");
        let words = tokio_stream::iter(["one", "two", "three"].map(word));
        let grpc = caller.ready().await;
        let all = grpc.client_streaming(Request::new(words), path, Codec::default());
        assert_eq!(text(all.await.unwrap().get_ref()), "one two three");

        let path = PathAndQuery::from_static("/test.Words/Spread");
        let grpc = caller.ready().await;
        let spread = grpc.server_streaming(Request::new(word("a b c")), path, Codec::default());
        let mut words = spread.await.unwrap().into_inner();
        for expected in ["a", "b", "c"] {
            assert_eq!(text(&words.next().await.unwrap().unwrap()), expected);
        }
        let end = words.next().await.unwrap().unwrap_err();
        assert_eq!(
            (end.code(), end.message()),
            (Code::OutOfRange, "no more words")
        );

        // Each word is sent only once the answer to the one before has come.
        let path = PathAndQuery::from_static("/test.Words/Talk");
        let (say, said) = tokio::sync::mpsc::channel(1);
        let said = tokio_stream::wrappers::ReceiverStream::new(said);
        let grpc = caller.ready().await;
        let talk = grpc.streaming(Request::new(said), path, Codec::default());
        let mut answers = talk.await.unwrap().into_inner();
        for number in 0..5 {
            say.send(word(number.to_string())).await.unwrap();
            let answer = answers.next().await.unwrap().unwrap();
            assert_eq!(text(&answer), format!("{number}?"));
        }
        drop(say);
        assert!(answers.next().await.is_none());

        let records = proxy.records(4);
        let paths: Vec<_> = records.iter().map(|record| record.path.as_str()).collect();
        let methods = ["Unary", "Collect", "Spread", "Talk"];
        assert_eq!(paths, methods.map(|method| format!("/test.Words/{method}")));
        for record in &records {
            assert_eq!(
                (record.outcome, record.status),
                (Outcome::Complete, Some(200))
            );
            assert!(
                record
                    .milestones
                    .best(Milestone::DownResponseLast)
                    .is_some()
            );
        }
    });
}

#[test]
fn an_error_without_a_message_is_all_in_one_head() {
    run(async {
        let proxy = Running::start(config(start(Service::default()).await));
        let error = Caller::new(&proxy)
            .unary("unknown", None)
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (Code::NotFound, "no such word")
        );
        let record = proxy.record();
        assert_eq!(
            (record.outcome, record.status),
            (Outcome::Complete, Some(200))
        );
        let best = |milestone| record.milestones.best(milestone).unwrap();
        assert_eq!(
            best(Milestone::UpResponseHead),
            best(Milestone::UpResponseLast)
        );
    });
}

#[test]
fn a_deadline_ends_a_call_that_takes_longer() {
    run(async {
        let proxy = Running::start(config(start(Service::default()).await));
        let began = Instant::now();
        let timeout = Some(Duration::from_millis(150));
        let error = Caller::new(&proxy)
            .unary("slow", timeout)
            .await
            .unwrap_err();
        // Either side may be the first to notice.
        let codes = [Code::Cancelled, Code::DeadlineExceeded];
        assert!(codes.contains(&error.code()), "{error}");
        assert!(began.elapsed() < PATIENCE / 4);
        let record = proxy.record();
        assert!(record.path.ends_with("/Unary"));
    });
}

#[test]
fn a_call_that_is_given_up_is_given_up_at_the_server() {
    run(async {
        let service = Service::default();
        let proxy = Running::start(config(start(service.clone()).await));
        let mut caller = Caller::new(&proxy);
        let path = PathAndQuery::from_static("/test.Words/Endless");
        let grpc = caller.ready().await;
        let call = grpc.server_streaming(Request::new(word("go")), path, Codec::default());
        let mut words = call.await.unwrap().into_inner();
        for number in 0..3 {
            assert_eq!(
                text(&words.next().await.unwrap().unwrap()),
                number.to_string()
            );
        }
        drop(words);
        let given_up = || service.given_up.load(Ordering::SeqCst);
        until("the server gives up", given_up).await;
        assert_eq!(proxy.record().outcome, Outcome::ClientGone);
        // The connection is as good as before.
        assert_eq!(caller.unary("still", None).await.unwrap(), "still!");
    });
}
