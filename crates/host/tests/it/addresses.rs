//! Addresses of every kind.

use std::net::TcpListener;

use skewtap_core::endpoint::QueueOutcome;
use skewtap_host::{WatchRequest, Watcher, WatcherSettings};

use crate::endpoint_process::{Watched, client_to, nowhere, send_message};

fn is_watched(bind: &str, host: &str) {
    let listener = TcpListener::bind(bind).unwrap();
    let watcher = Watcher::start(WatcherSettings::default());
    let (mut client, mut stream) = client_to("sleep", &listener, host);
    let result = Watched::by(&watcher, send_message(&mut stream)).result();
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    assert!(result.queue.unread_polls > 0);
    assert!(client.act("read").overlaps(&result.picked_up.unwrap()));
    assert_eq!(result.process.unwrap().pid, client.pid());
}

#[test]
fn both_ends_ipv6() {
    is_watched("[::1]:0", "[::1]");
}

#[test]
fn our_end_ipv6_and_the_clients_ipv4() {
    is_watched("[::]:0", "127.0.0.1");
}

#[test]
fn our_end_ipv4_and_the_clients_ipv6() {
    is_watched("127.0.0.1:0", "[::ffff:127.0.0.1]");
}

#[test]
fn an_address_that_is_not_of_this_machine() {
    let watcher = Watcher::start(WatcherSettings::default());
    let result = Watched::by(
        &watcher,
        WatchRequest {
            peer: nowhere(),
            local: "192.0.2.2:9".parse().unwrap(),
            bytes_sent: 1,
            sent_before_ns: 0,
            watch_accept: false,
            peer_had_ended: false,
        },
    )
    .result();
    assert_eq!(result.queue.outcome, QueueOutcome::NotHere);
    assert_eq!(result.picked_up, None);
}
