//! Where the time of one request went, stage by stage.

use serde::Serialize;
use skewtap_core::verdict_json::{Bounds, ExchangeJson, VerdictJson};

/// The stages of one exchange, in the order time passes through them. They do not overlap. A stage
/// that was not seen is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Stages {
    /// The client's span if there is one; else from the client's connection, or from the first
    /// request byte on a connection that was there already, to the end of all that was seen.
    pub(super) total: Option<Bounds>,
    /// From the start of the client's span, or else of its connection, to the first request byte.
    pub(super) before_send: Option<Bounds>,
    /// The connection to the server.
    pub(super) connect: Option<Bounds>,
    /// The TLS handshake with the server.
    pub(super) tls: Option<Bounds>,
    /// From the first request byte to the last one sent to the server, without connect and TLS.
    pub(super) request: Option<Bounds>,
    /// From the last request byte sent to the server to the first response byte.
    pub(super) server_wait: Option<Bounds>,
    /// From the first response byte to the last one sent to the client.
    pub(super) response: Option<Bounds>,
    /// How long the whole response lay in the client's kernel before the client read it.
    pub(super) unread: Option<Bounds>,
    /// From that to the end of the client's span.
    pub(super) after_read: Option<Bounds>,
    /// What went on inside a tunnel or after an upgrade, from its first byte to its last.
    pub(super) tunnel: Option<Bounds>,
}

impl Stages {
    /// The stages of the exchange at place `at` of `verdict`.
    pub(super) fn of(verdict: &VerdictJson, at: usize, exchange: &ExchangeJson) -> Self {
        let instant = |name: &str| exchange.milestones.get(name).copied();
        let first = instant("down.request.first");
        let answer = instant("up.response.first");
        let asked = asked(&instant);
        let connected = instant("up.connected");
        let connect = between(instant("up.connect.start"), connected);
        let tls = between(connected, instant("up.tls_done"));
        let out = instant("down.response.last");
        let read = instant("client.picked_up");
        // A server's or else the proxy's own response.
        let response_from = answer.or_else(|| instant("down.response.first"));
        let is_only = verdict.exchanges == 1;
        let span_row = |name, wanted: bool| wanted.then(|| row(verdict, name)).flatten();
        let connection = began_before(instant("down.connected"), first);
        let client_span = verdict.client_seconds.filter(|_| is_only);
        let tunnel_end = later(instant("down.tunnel.last"), instant("up.tunnel.last"));
        let seen = between(connection.or(first), tunnel_end.or(read).or(out));
        Self {
            total: client_span.map(exactly).or(seen),
            before_send: span_row("client_before_send", at == 0).or(between(connection, first)),
            connect,
            tls,
            request: without(without(between(first, asked), connect), tls),
            server_wait: between(asked, answer),
            response: between(response_from, out),
            unread: between(out, read),
            after_read: span_row("client_after_read", at + 1 == verdict.exchanges),
            tunnel: between(instant("down.tunnel.first").or(out), tunnel_end),
        }
    }
}

/// When the server had been asked: with the request's end, or with its head where the answer came
/// before the rest.
fn asked(instant: &impl Fn(&str) -> Option<Bounds>) -> Option<Bounds> {
    let last = instant("up.request.last");
    let early = match (instant("up.response.first"), last) {
        (Some(answer), Some(last)) => answer.hi_seconds < last.lo_seconds,
        (Some(_), None) => true,
        (None, _) => false,
    };
    if early {
        instant("up.request.head")
    } else {
        last
    }
}

/// When the client's connection stood, unless it was taken only after the first byte had come: then
/// the time between says nothing of the client.
fn began_before(connected: Option<Bounds>, first: Option<Bounds>) -> Option<Bounds> {
    let first = first?;
    connected.filter(|connected| connected.lo_seconds <= first.hi_seconds)
}

/// The later of two instants, of which one may be missing.
fn later(a: Option<Bounds>, b: Option<Bounds>) -> Option<Bounds> {
    let (Some(a), Some(b)) = (a, b) else {
        return a.or(b);
    };
    Some(Bounds {
        lo_seconds: a.lo_seconds.max(b.lo_seconds),
        hi_seconds: a.hi_seconds.max(b.hi_seconds),
    })
}

fn row(verdict: &VerdictJson, name: &str) -> Option<Bounds> {
    let row = verdict.segments.iter().find(|row| row.name == name)?;
    Some(Bounds {
        lo_seconds: row.lo_seconds,
        hi_seconds: row.hi_seconds,
    })
}

fn exactly(seconds: f64) -> Bounds {
    Bounds {
        lo_seconds: seconds,
        hi_seconds: seconds,
    }
}

fn between(from: Option<Bounds>, to: Option<Bounds>) -> Option<Bounds> {
    Some(difference(to?, from?))
}

/// What is left of `whole` beside a part of it that may be missing.
fn without(whole: Option<Bounds>, part: Option<Bounds>) -> Option<Bounds> {
    Some(difference(whole?, part.unwrap_or(exactly(0.0))))
}

fn difference(a: Bounds, b: Bounds) -> Bounds {
    // All stamps are whole nanoseconds; what is beyond them comes of the subtraction.
    let whole_ns = |seconds: f64| (seconds * 1e9).round() / 1e9;
    Bounds {
        lo_seconds: whole_ns(a.lo_seconds - b.hi_seconds),
        hi_seconds: whole_ns(a.hi_seconds - b.lo_seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::outcome::cases::verdict;

    fn stages(change: impl FnOnce(&mut VerdictJson)) -> Stages {
        let mut verdict = verdict(0.4, true);
        change(&mut verdict);
        Stages::of(&verdict, 0, &verdict.exchanges_detail[0])
    }

    fn middle(stage: Option<Bounds>) -> f64 {
        let stage = stage.unwrap();
        f64::midpoint(stage.lo_seconds, stage.hi_seconds)
    }

    #[test]
    fn the_stages_add_up_to_the_total() {
        let stages = stages(|_| {});
        let parts = [
            stages.before_send,
            stages.connect,
            stages.request,
            stages.server_wait,
            stages.response,
            stages.unread,
        ];
        let sum: f64 = parts.into_iter().map(middle).sum();
        assert!((sum - middle(stages.total)).abs() < 1e-9, "{stages:?}");
        assert_eq!(stages.tls, None);
    }

    #[test]
    fn a_handshake_is_no_part_of_the_request() {
        let stages = stages(|verdict| {
            let milestones = &mut verdict.exchanges_detail[0].milestones;
            milestones.insert("up.tls_done".into(), exactly(0.008));
        });
        assert!((middle(stages.tls) - 0.003).abs() < 1e-9, "{stages:?}");
        assert!((middle(stages.request) - 0.005).abs() < 1e-9, "{stages:?}");
    }

    #[test]
    fn a_connection_that_was_taken_late_tells_nothing_of_the_client() {
        let stages = stages(|verdict| {
            let milestones = &mut verdict.exchanges_detail[0].milestones;
            milestones.insert("down.connected".into(), exactly(0.002));
        });
        assert_eq!(stages.before_send, None);
        assert!((middle(stages.total) - 0.720).abs() < 1e-9, "{stages:?}");
    }

    #[test]
    fn a_tunnel_lasts_until_both_sides_are_silent() {
        let stages = stages(|verdict| {
            let milestones = &mut verdict.exchanges_detail[0].milestones;
            milestones.insert("down.tunnel.first".into(), exactly(0.4));
            milestones.insert("down.tunnel.last".into(), exactly(0.9));
            milestones.insert("up.tunnel.last".into(), exactly(1.4));
        });
        assert!((middle(stages.tunnel) - 1.0).abs() < 1e-9, "{stages:?}");
        assert!((middle(stages.total) - 1.401).abs() < 1e-9, "{stages:?}");
    }

    #[test]
    fn an_answer_before_the_requests_end_is_waited_for_from_the_head_on() {
        let stages = stages(|verdict| {
            let milestones = &mut verdict.exchanges_detail[0].milestones;
            milestones.insert("up.request.head".into(), exactly(0.006));
            milestones.insert("up.request.last".into(), exactly(0.350));
        });
        assert!(
            (middle(stages.server_wait) - 0.304).abs() < 1e-9,
            "{stages:?}"
        );
    }

    #[test]
    fn a_clients_span_is_the_total() {
        let stages = stages(|verdict| verdict.client_seconds = Some(0.9));
        assert_eq!(stages.total, Some(exactly(0.9)));
    }

    #[test]
    fn uncertainty_adds_up() {
        let from = Bounds {
            lo_seconds: 1.0,
            hi_seconds: 2.0,
        };
        let to = Bounds {
            lo_seconds: 4.0,
            hi_seconds: 8.0,
        };
        let length = between(Some(from), Some(to)).unwrap();
        assert_eq!((length.lo_seconds, length.hi_seconds), (2.0, 7.0));
        let rest = without(Some(to), Some(from)).unwrap();
        assert_eq!((rest.lo_seconds, rest.hi_seconds), (2.0, 7.0));
        assert_eq!(without(Some(to), None), Some(to));
    }
}
