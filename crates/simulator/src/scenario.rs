//! What truly happens to one call.

use skewtap_core::audit::Observed;
use skewtap_core::endpoint::{
    Activity, ActivityCount, ProcessWatch, QueueOutcome, QueueWatch, ThreadWatch,
};
use skewtap_core::exchange::{ExchangeRecord, Leg, Outcome, SourceState, Sources};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::milestone::{Milestone, Milestones};
use skewtap_core::reported_span::{ReportedSpan, SpanKind};

use crate::world::World;

/// When a call starts in true time: some day in 2023.
const START_NS: i64 = 1_700_000_000_000_000_000;

/// The true length of every part of a call, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// In the client, before its first byte reaches the proxy.
    pub before_send_ns: i64,
    /// From the first request byte to the last.
    pub request_ns: i64,
    /// In the proxy, each way.
    pub proxy_ns: i64,
    /// From the proxy to the server's span: network and queue.
    pub before_server_span_ns: i64,
    /// The server's span.
    pub server_ns: i64,
    /// From the end of the server's span to the last response byte at the proxy.
    pub after_server_span_ns: i64,
    /// In the client's receive queue.
    pub unread_ns: i64,
    /// In the client, from its read to the end of its span.
    pub after_read_ns: i64,
    /// What the client's only thread does while the response lies unread.
    pub meanwhile: Meanwhile,
}

/// What a client's thread does instead of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// Sleeps in `poll` without any descriptor.
    SleepsBlind,
    /// Waits for the socket: it is woken late.
    WaitsForSocket,
    /// Runs.
    Computes,
}

impl Scenario {
    /// A healthy call that takes the server `server_ns` nanoseconds.
    #[must_use]
    pub const fn healthy(server_ns: i64) -> Self {
        Self {
            before_send_ns: 400_000,
            request_ns: 100_000,
            proxy_ns: 60_000,
            before_server_span_ns: 150_000,
            server_ns,
            after_server_span_ns: 120_000,
            unread_ns: 80_000,
            after_read_ns: 90_000,
            meanwhile: Meanwhile::WaitsForSocket,
        }
    }

    /// What skewtap would be told of it in `world`.
    #[must_use]
    pub fn observe(&self, world: &World) -> Observed {
        let at = Instants::of(self);
        let client = span(
            Role::Client,
            at.client_start,
            at.client_end,
            world.client_ahead_ns,
        );
        let server = span(
            Role::Server,
            at.server_start,
            at.server_end,
            world.server_ahead_ns,
        );
        Observed {
            exchanges: vec![self.record(&at, world)],
            client: Some(client),
            servers: vec![server],
        }
    }

    /// The true length of the client's span, in nanoseconds.
    #[must_use]
    pub fn client_ns(&self) -> i64 {
        let at = Instants::of(self);
        at.client_end - at.client_start
    }

    fn record(&self, at: &Instants, world: &World) -> ExchangeRecord {
        let mut milestones = at.stamps(world);
        let queue = if world.endpoints_here {
            milestones.note(Milestone::ClientPickedUp, world.read(at.picked_up));
            QueueWatch {
                outcome: QueueOutcome::Read,
                polls: 40,
                unread_polls: 39,
            }
        } else {
            QueueWatch {
                outcome: QueueOutcome::NotHere,
                polls: 1,
                unread_polls: 0,
            }
        };
        let sampled = world.samples && world.endpoints_here && self.unread_ns > 35_000_000;
        ExchangeRecord {
            trace_id: trace_id(),
            span_id: span_id(3),
            parent_span_id: Some(span_id(1)),
            sampled: true,
            method: "GET".to_owned(),
            scheme: "http".to_owned(),
            authority: "shop.example".to_owned(),
            path: "/cart".to_owned(),
            status: Some(200),
            outcome: Outcome::Complete,
            request_bytes: Some(120),
            response_bytes: Some(300),
            down: leg("127.0.0.1:8080", "127.0.0.1:41000"),
            up: Some(leg("127.0.0.1:42000", "127.0.0.1:9000")),
            down_stream: None,
            up_stream: None,
            milestones,
            client_queue: queue,
            client_process: sampled.then(|| process(self.meanwhile)),
            server_queue: QueueWatch {
                polls: 2,
                unread_polls: 0,
                ..queue
            },
            server_process: None,
            sources: sources(world),
            clock_step_ns: 0,
        }
    }
}

/// The true instants of a call, in nanoseconds since the Unix epoch.
struct Instants {
    client_start: i64,
    request_first: i64,
    request_last: i64,
    asked: i64,
    server_start: i64,
    server_end: i64,
    answered: i64,
    response_out: i64,
    picked_up: i64,
    client_end: i64,
}

impl Instants {
    fn of(scenario: &Scenario) -> Self {
        let client_start = START_NS;
        let request_first = client_start + scenario.before_send_ns;
        let request_last = request_first + scenario.request_ns;
        let asked = request_last + scenario.proxy_ns;
        let server_start = asked + scenario.before_server_span_ns;
        let server_end = server_start + scenario.server_ns;
        let answered = server_end + scenario.after_server_span_ns;
        let response_out = answered + scenario.proxy_ns;
        let picked_up = response_out + scenario.unread_ns;
        let client_end = picked_up + scenario.after_read_ns;
        Self {
            client_start,
            request_first,
            request_last,
            asked,
            server_start,
            server_end,
            answered,
            response_out,
            picked_up,
            client_end,
        }
    }

    /// What the proxy's machine stamps of the wire.
    fn stamps(&self, world: &World) -> Milestones {
        let mut milestones = Milestones::default();
        for (milestone, ns) in [
            (Milestone::DownRequestFirst, self.request_first),
            (Milestone::DownRequestHead, self.request_first),
            (Milestone::DownRequestLast, self.request_last),
            (Milestone::UpResponseFirst, self.answered),
            (Milestone::UpResponseHead, self.answered),
            (Milestone::UpResponseLast, self.answered),
        ] {
            milestones.note(milestone, world.arrival(ns));
        }
        for (milestone, ns) in [
            (Milestone::UpRequestFirst, self.asked),
            (Milestone::UpRequestHead, self.asked),
            (Milestone::UpRequestLast, self.asked),
            (Milestone::DownResponseFirst, self.response_out),
            (Milestone::DownResponseHead, self.response_out),
            (Milestone::DownResponseLast, self.response_out),
        ] {
            milestones.note(milestone, world.departure(ns));
        }
        milestones
    }
}

enum Role {
    Client,
    Server,
}

fn span(role: Role, start: i64, end: i64, ahead_ns: i64) -> ReportedSpan {
    let (span_id, parent_span_id, kind, service) = match role {
        Role::Client => (span_id(1), None, SpanKind::Client, "shop-client"),
        Role::Server => (span_id(2), Some(span_id(1)), SpanKind::Server, "shop"),
    };
    ReportedSpan {
        trace_id: trace_id(),
        span_id,
        parent_span_id,
        kind,
        name: "GET".to_owned(),
        // One nanosecond off the round numbers: a start in whole milliseconds would be taken for
        // one that was rounded to them.
        start_ns: start + ahead_ns + 1,
        end_ns: end + ahead_ns + 1,
        error: false,
        service: service.to_owned(),
        instance: format!("{service}-1"),
        scope: "test".to_owned(),
        scope_version: "1".to_owned(),
        method: Some("GET".to_owned()),
        status: Some(200),
        route: None,
        user_agent: None,
        peer_port: None,
    }
}

fn process(meanwhile: Meanwhile) -> ProcessWatch {
    let activity = match meanwhile {
        Meanwhile::SleepsBlind => Activity::Sleep {
            call: "poll".to_owned(),
            timeout_ns: Some(1_000_000_000),
        },
        Meanwhile::WaitsForSocket => Activity::WaitHere {
            call: "poll".to_owned(),
        },
        Meanwhile::Computes => Activity::Running,
    };
    ProcessWatch {
        pid: 4711,
        command: "client".to_owned(),
        samples: 30,
        limits: vec![],
        threads: vec![ThreadWatch {
            tid: 4711,
            name: "client".to_owned(),
            cpu_ns: None,
            run_queue_ns: None,
            activities: vec![ActivityCount {
                activity: activity.clone(),
                samples: 30,
            }],
            last: Some(activity),
            woke_at_pick_up: Some(true),
        }],
    }
}

fn sources(world: &World) -> Sources {
    Sources {
        kernel_stamps: SourceState::Used,
        capture: if world.packets {
            SourceState::Used
        } else {
            SourceState::Off
        },
        queues: SourceState::Used,
        processes: if world.samples {
            SourceState::Used
        } else {
            SourceState::Off
        },
    }
}

fn leg(local: &str, peer: &str) -> Leg {
    Leg {
        local: local.to_owned(),
        peer: peer.to_owned(),
        earlier_exchanges: 0,
        tcp: None,
    }
}

fn trace_id() -> TraceId {
    id(TraceId::from_bytes(&[0x4b; 16]))
}

fn span_id(n: u8) -> SpanId {
    id(SpanId::from_bytes(&[n; 8]))
}

#[expect(clippy::expect_used, reason = "the identifiers above are not zero")]
fn id<T, E: std::fmt::Debug>(made: Result<T, E>) -> T {
    made.expect("a valid identifier")
}
