//! An hour without a collector. It passes on the runtime's paused clock, with real connections.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use skewtap_core::ids::TraceId;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use super::queue::BATCH;
use super::span_batch::tests::record;
use super::*;

/// Records of the hour, one every 100 ms.
const OF_THE_HOUR: u64 = 36_000;
const BETWEEN: Duration = Duration::from_millis(100);

/// Records after it.
const LATER: u64 = 100;

/// Room in the queue.
const ROOM: usize = 1_000;

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn an_hour_without_a_collector_costs_records_but_no_memory_and_ends_by_itself() {
    // Bound, so that nobody else takes the port; it refuses connections until it listens.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let config = Config {
        otlp: Some(format!("http://{address}").parse().unwrap()),
        ship_queue: ROOM,
        ..Config::default()
    };
    let metrics = Arc::new(Metrics::new());
    let (records, shipping) = prepare(&config, &metrics, CancellationToken::new());
    let shipping = tokio::spawn(shipping);

    let mut found_no_room = BTreeSet::new();
    for number in 0..OF_THE_HOUR {
        if waiting(&records) == ROOM {
            found_no_room.insert(number);
        }
        records.add(&numbered(number));
        let held = number + 1 - metrics.dropped_in_all();
        assert!(held <= (ROOM + BATCH) as u64, "{held} records are held");
        sleep(BETWEEN).await;
    }
    assert_eq!(count(&metrics, "shipped_total"), 0);
    assert!(!found_no_room.is_empty());
    let full = count(&metrics, "dropped_total{reason=\"queue-full\"}");
    assert_eq!(full, found_no_room.len() as u64);

    let mut collector = Collector::start_on(socket).await;
    for number in OF_THE_HOUR..OF_THE_HOUR + LATER {
        // One that is about to take a batch makes room for what has come meanwhile.
        while waiting(&records) == ROOM {
            collector.take().await;
        }
        records.add(&numbered(number));
    }
    drop(records);
    while !collector.took.contains(&(OF_THE_HOUR + LATER - 1)) {
        collector.take().await;
    }
    timeout(PATIENCE, shipping).await.unwrap().unwrap();

    let took = &collector.took;
    let later = took.range(OF_THE_HOUR..).count();
    assert_eq!(later as u64, LATER);
    // Once the queue was full, one batch at a time left it.
    let kept = took.len() - later;
    assert!(kept >= ROOM - BATCH, "{kept} of the hour are left");
    assert!(took.is_disjoint(&found_no_room));
    let given_up = count(&metrics, "dropped_total{reason=\"not-taken\"}");
    assert!(given_up > 0);
    assert_eq!(took.len() as u64 + full + given_up, OF_THE_HOUR + LATER);
    assert_eq!(count(&metrics, "shipped_total"), took.len() as u64);
    assert_eq!(metrics.dropped_in_all(), full + given_up);
    assert_eq!(collector.told_of_dropped, full + given_up);
}

/// Records in the queue.
fn waiting(records: &Records) -> usize {
    records.queue.as_ref().unwrap().len()
}

/// What `/metrics` says of records.
fn count(metrics: &Metrics, name: &str) -> u64 {
    let text = metrics.text().unwrap();
    let name = format!("skewtap_proxy_records_{name} ");
    let found = text.lines().find_map(|line| line.strip_prefix(&name));
    found.unwrap().parse().unwrap()
}

/// A collector at last.
struct Collector {
    requests: mpsc::UnboundedReceiver<ExportTraceServiceRequest>,
    /// Numbers of the records that came.
    took: BTreeSet<u64>,
    /// How many were dropped, as the last request has it.
    told_of_dropped: u64,
}

impl Collector {
    /// Listens, and lets the clock run on by itself from the first connection on: the clock of a
    /// paused runtime may run ahead of what is on its way.
    async fn start_on(socket: TcpSocket) -> Self {
        let listener: TcpListener = socket.listen(64).unwrap();
        let (first, _) = listener.accept().await.unwrap();
        tokio::time::resume();
        let incoming = tokio_stream::once(Ok(first)).chain(TcpListenerStream::new(listener));
        let (sender, requests) = mpsc::unbounded_channel();
        tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(TraceServiceServer::new(Taker(sender)))
                .serve_with_incoming(incoming),
        );
        Self {
            requests,
            took: BTreeSet::new(),
            told_of_dropped: 0,
        }
    }

    /// Waits for the next request.
    async fn take(&mut self) {
        let request = timeout(PATIENCE, self.requests.recv()).await;
        for resource_spans in request.unwrap().unwrap().resource_spans {
            for scope_spans in resource_spans.scope_spans {
                let scope = scope_spans.scope.unwrap();
                let dropped = scope.attributes.into_iter().next().unwrap();
                let dropped = dropped.value.unwrap().value.unwrap();
                let Value::IntValue(dropped) = dropped else {
                    panic!("{dropped:?}");
                };
                self.told_of_dropped = dropped.try_into().unwrap();
                let ids = scope_spans.spans.into_iter().map(|span| span.trace_id);
                let numbers = ids.map(|id| u64::from_be_bytes(id[8..].try_into().unwrap()));
                // A request that was answered too late comes again.
                self.took.extend(numbers.map(|number| number - 1));
            }
        }
    }
}

struct Taker(mpsc::UnboundedSender<ExportTraceServiceRequest>);

#[tonic::async_trait]
impl TraceService for Taker {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.send(request.into_inner()).unwrap();
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// A record that has its number as its trace id, one up, as there is no trace 0.
fn numbered(number: u64) -> Record<'static> {
    let id = u128::from(number + 1).to_be_bytes();
    Record {
        trace_id: TraceId::from_bytes(&id).unwrap(),
        ..record(1, true)
    }
}
