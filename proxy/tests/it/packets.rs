//! Packets join the exchange they belong to. Needs the privilege to capture.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use skewtap_core::clock::Source;
use skewtap_core::exchange::SourceState;
use skewtap_core::milestone::Milestone;

use crate::harness::{Running, assert_within, config, now_ns, origin, stamp, timed_write};
use crate::not_run::not_run;
use crate::streams;
use crate::wire::{expect, expect_end, head};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A proxy that captures, or `None`, told by name, where that is not permitted.
fn capturing(test: &str, upstream: std::net::SocketAddr) -> Option<Running> {
    let proxy = Running::start(skewtap_proxy::Config {
        capture: true,
        // Long enough for an acknowledgement that the client's kernel delays.
        packet_grace: Duration::from_secs(1),
        ..config(upstream)
    });
    if proxy.sources.capture == SourceState::Used {
        return Some(proxy);
    }
    not_run(&format!("packets::{test}"), "needs CAP_NET_RAW");
    None
}

#[test]
fn packets_time_every_part_needs_cap_net_raw() {
    let (address, server) = origin(1, |mut stream| {
        let mut answered = Vec::new();
        for _ in 0..3 {
            head(&mut stream);
            thread::sleep(Duration::from_millis(30));
            answered.push(timed_write(&mut stream, OK.as_bytes()));
        }
        expect_end(&mut stream);
        answered
    });
    let Some(proxy) = capturing("packets_time_every_part_needs_cap_net_raw", address) else {
        return;
    };
    let connecting = now_ns();
    let mut client = proxy.connect();
    let connected = (connecting, now_ns());
    let mut asked = Vec::new();
    for number in 0..3 {
        let request = format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n");
        asked.push(timed_write(&mut client, request.as_bytes()));
        expect(&mut client, OK);
        asked.push((now_ns(), 0));
        thread::sleep(Duration::from_millis(30));
    }
    let records = proxy.records(3);
    drop(client);
    let answered = server.join().unwrap().remove(0);
    let packet = |number: usize, milestone| stamp(&records[number], milestone, Source::Packet);
    assert_within(packet(0, Milestone::DownConnected), connected, "handshake");
    assert_within(
        packet(0, Milestone::UpConnectStart),
        (asked[0].0, answered[0].0),
        "dial",
    );
    for number in 0..3 {
        let (sent, got) = (asked[2 * number], asked[2 * number + 1].0);
        let answered = answered[number];
        for (milestone, from, to) in [
            (Milestone::DownRequestFirst, sent.0, answered.0),
            (Milestone::DownRequestLast, sent.0, answered.0),
            (Milestone::UpRequestFirst, sent.0, answered.0),
            (Milestone::UpRequestLast, sent.0, answered.0),
            (Milestone::UpResponseFirst, answered.0, got),
            (Milestone::UpResponseLast, answered.0, got),
            (Milestone::DownResponseFirst, answered.0, got),
            (Milestone::DownResponseLast, answered.0, got),
        ] {
            assert_within(packet(number, milestone), (from, to), milestone.name());
            assert!(packet(number, milestone).width() < 1_000_000);
        }
        let acked = packet(number, Milestone::ClientAcked);
        assert!(acked.hi() >= answered.0, "acknowledged before it was sent");
        assert_eq!(records[number].sources.capture, SourceState::Used);
    }
}

#[test]
fn packets_of_a_new_port_are_captured_from_then_on_needs_cap_net_raw() {
    let (address, server) = origin(2, |mut stream| {
        head(&mut stream);
        let answered = timed_write(&mut stream, OK.as_bytes());
        expect_end(&mut stream);
        answered
    });
    let name = "packets_of_a_new_port_are_captured_from_then_on_needs_cap_net_raw";
    let forward = skewtap_proxy::Config {
        upstream: None,
        ..config(address)
    };
    let Some(proxy) = capturing(name, address).map(|_| {
        Running::start(skewtap_proxy::Config {
            capture: true,
            packet_grace: Duration::from_secs(1),
            ..forward
        })
    }) else {
        return;
    };
    for _ in 0..2 {
        let mut client = proxy.connect();
        let request = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        expect(&mut client, OK);
        thread::sleep(Duration::from_millis(20));
    }
    let answered = server.join().unwrap();
    let records = proxy.records(2);
    let came = stamp(&records[1], Milestone::UpResponseFirst, Source::Packet);
    assert_within(came, answered[1], "the second response");
}

#[test]
fn packets_time_each_stream_needs_cap_net_raw() {
    const PAUSE: Duration = Duration::from_millis(40);
    streams::run(async {
        let origin = streams::origin(|request, mut respond| async move {
            let pauses: u32 = request.uri().path()[1..].parse().unwrap();
            tokio::time::sleep(PAUSE * pauses).await;
            respond
                .send_response(http::Response::new(()), true)
                .unwrap();
        })
        .await;
        let name = "packets_time_each_stream_needs_cap_net_raw";
        let Some(proxy) = capturing(name, origin.address) else {
            return;
        };
        let client = streams::client(proxy.addresses.traffic).await;
        let began = now_ns();
        let mut under_way = Vec::new();
        for pauses in 0..3 {
            let mut client = client.clone().ready().await.unwrap();
            let request = streams::request("GET", &format!("/{pauses}"));
            under_way.push(client.send_request(request, true).unwrap().0);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for response in under_way {
            assert_eq!(response.await.unwrap().status(), 200);
        }
        let ended = now_ns();
        for record in proxy.records(3) {
            let pauses: i64 = record.path[1..].parse().unwrap();
            let packet = |milestone| stamp(&record, milestone, Source::Packet);
            let (asked, answered) = (
                packet(Milestone::UpRequestLast),
                packet(Milestone::UpResponseFirst),
            );
            let waited = answered.hi() - asked.lo();
            assert!(waited >= pauses * 40_000_000, "{pauses}: {waited} ns");
            for milestone in [
                Milestone::DownRequestFirst,
                Milestone::UpRequestFirst,
                Milestone::UpResponseLast,
                Milestone::DownResponseLast,
            ] {
                let stamp = packet(milestone);
                assert_within(stamp, (began, ended), milestone.name());
                assert!(stamp.width() < 1_000_000, "{milestone}");
            }
            let kernel = stamp(&record, Milestone::UpResponseFirst, Source::Kernel);
            assert!((kernel.hi() - answered.hi()).abs() < 5_000_000);
        }
    });
}
