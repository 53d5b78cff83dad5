//! The run and its judgement.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::clients::{Asked, ask};
use super::origin;
use super::proxy::Proxy;
use super::sink::Sink;

/// Clients at once.
const CLIENTS: u64 = 32;

/// Time in which everything that was under way must have ended.
const PATIENCE: Duration = Duration::from_secs(60);

/// Growth of memory after the warm-up that is no leak: a tenth, but at least this, in KiB.
const LEAST_GROWTH: u64 = 6 * 1024;

/// Descriptors of the last looks at `/metrics` that the proxy may not have closed yet.
const ADMIN_DESCRIPTORS: usize = 2;

fn duration() -> Duration {
    let seconds = std::env::var("SKEWTAP_SOAK_SECONDS");
    Duration::from_secs(seconds.map_or(20, |seconds| seconds.parse().unwrap()))
}

#[test]
fn nothing_leaks_and_every_exchange_has_one_record() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(soak());
}

async fn soak() {
    let sink = Sink::default();
    let proxy = Proxy::start(origin::start().await, &sink.start());
    // The first exchange opens what stays open.
    ask_once(&proxy).await;
    settle(&proxy).await;
    let descriptors = proxy.descriptors();
    let (asked, memory) = load(&proxy).await;
    settle(&proxy).await;
    let exchanges = proxy.counted("skewtap_proxy_exchanges_total{");
    let shipped = proxy.counted("skewtap_proxy_records_shipped_total");
    let dropped = proxy.counted("skewtap_proxy_records_dropped_total{");
    let records = sink.records();
    println!(
        "{exchanges} exchanges, {:.0}/s, {} answered whole; {shipped} records shipped, {dropped} \
         dropped; descriptors {descriptors} before, {} after; memory in KiB {memory:?}",
        exchanges as f64 / duration().as_secs_f64(),
        asked.answered.len(),
        proxy.descriptors(),
    );
    assert_eq!(exchanges, shipped + dropped, "each exchange has one record");
    assert_eq!(
        records.values().map(|count| u64::from(*count)).sum::<u64>(),
        shipped
    );
    let twice = records.iter().filter(|(_, count)| **count > 1).count();
    assert_eq!(twice, 0, "records of an exchange that has one already");
    let known: HashSet<u128> = records.into_keys().collect();
    let missing = asked.answered.difference(&known).count() as u64;
    assert!(
        missing <= dropped,
        "{missing} answered requests without a record"
    );
    // The one of `ask_once` has an id that nobody chose.
    assert!(
        known.difference(&asked.sent).count() <= 1,
        "records of no request"
    );
    assert!(exchanges > 1_000, "too few to tell");
    let left = proxy.descriptors().saturating_sub(descriptors);
    assert!(
        left <= ADMIN_DESCRIPTORS,
        "{left} descriptors are left open"
    );
    let growth = memory.late.saturating_sub(memory.early);
    let allowed = LEAST_GROWTH.max(memory.early / 10);
    assert!(growth <= allowed, "memory grows: {memory:?}");
}

/// Memory after the warm-up and at the end, in KiB.
#[derive(Debug)]
struct Memory {
    early: u64,
    late: u64,
}

async fn load(proxy: &Proxy) -> (Asked, Memory) {
    let end = Instant::now() + duration();
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| tokio::spawn(ask(proxy.traffic, number, end)))
        .collect();
    let mut samples = Vec::new();
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(100)).await;
        samples.push(proxy.memory());
    }
    let mut all = Asked::default();
    for client in clients {
        let asked = client.await.unwrap();
        all.sent.extend(asked.sent);
        all.answered.extend(asked.answered);
    }
    // A quarter is the warm-up; then a fifth of the rest at either end.
    let rest = samples.split_off(samples.len() / 4);
    let fifth = rest.len() / 5;
    let memory = Memory {
        early: median(&rest[..fifth]),
        late: median(&rest[rest.len() - fifth..]),
    };
    (all, memory)
}

fn median(samples: &[u64]) -> u64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// One request in peace.
async fn ask_once(proxy: &Proxy) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let mut socket = tokio::net::TcpStream::connect(proxy.traffic).await.unwrap();
    let request = b"GET /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    socket.write_all(request).await.unwrap();
    assert!(socket.read(&mut [0]).await.unwrap() > 0);
}

/// Waits until nothing is under way any more, be it an exchange or a record.
async fn settle(proxy: &Proxy) {
    let began = Instant::now();
    loop {
        let open = proxy.counted("skewtap_proxy_open_connections");
        let exchanges = proxy.counted("skewtap_proxy_exchanges_total{");
        let settled = proxy.counted("skewtap_proxy_records_shipped_total")
            + proxy.counted("skewtap_proxy_records_dropped_total{");
        if open == 0 && exchanges > 0 && exchanges <= settled {
            return;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{open} connections open, {settled} of {exchanges} records settled"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
