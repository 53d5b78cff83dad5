//! New findings as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use super::WebState;
use super::aggregate_json::seconds;
use super::api_error::ApiError;
use crate::announcements::Announced;

/// Listeners at one time.
const MOST_LISTENERS: usize = 64;

/// How often a line is sent when there is nothing to tell, so that a listener that has gone is
/// noticed and nothing in between gives the connection up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Room for listeners; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Listeners(Arc<Semaphore>);

impl Default for Listeners {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST_LISTENERS)))
    }
}

/// A flagged exchange, as the data of an event named `finding`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FindingEvent {
    /// The trace.
    trace_id: String,
    /// The client's span.
    client_span_id: String,
    /// Whether it replaces an earlier verdict on the same span.
    is_revision: bool,
    /// When it began, in seconds since the Unix epoch.
    started_unix_seconds: Option<f64>,
    /// `service.name` of the client.
    client_service: Option<String>,
    /// `service.name` of the server.
    server_service: Option<String>,
    /// Low-cardinality path.
    route: Option<String>,
    /// Request method.
    method: String,
    /// Request path without the query.
    path: String,
    /// Client minus server.
    gap_seconds: Option<f64>,
    /// What nothing explains.
    unexplained_seconds: Option<f64>,
    /// Names of the causes found.
    causes: Vec<&'static str>,
}

/// How many findings a listener missed, as the data of an event named `missed`; the last one of
/// its connection.
#[derive(Debug, Serialize)]
struct MissedEvent {
    missed: u64,
}

/// `GET /api/v1/events`: `ready` at once, then `finding` for each new finding.
pub(super) async fn events(State(state): State<WebState>) -> Result<Response, ApiError> {
    let room = Arc::clone(&state.listeners.0).try_acquire_owned();
    let room = room.map_err(|_| ApiError::TooManyListeners(MOST_LISTENERS))?;
    let listener = Listener {
        findings: state.announcements.listen(),
        stopping: state.stopping.clone(),
        place: Place::Start,
        _room: room,
    };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events_of(listener))
        .keep_alive(keep_alive)
        .into_response())
}

struct Listener {
    findings: Receiver<Arc<Announced>>,
    stopping: CancellationToken,
    place: Place,
    /// Given back when the connection ends.
    _room: OwnedSemaphorePermit,
}

#[derive(Clone, Copy)]
enum Place {
    Start,
    Listening,
    End,
}

fn events_of(listener: Listener) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok(event), listener))
    })
}

impl Listener {
    async fn next(&mut self) -> Option<Event> {
        match self.place {
            Place::Start => {
                self.place = Place::Listening;
                Some(Event::default().event("ready").data("{}"))
            }
            Place::Listening => {
                let finding = tokio::select! {
                    () = self.stopping.cancelled() => return None,
                    finding = self.findings.recv() => finding,
                };
                match finding {
                    Ok(announced) => event("finding", &FindingEvent::from(&*announced)),
                    Err(RecvError::Closed) => None,
                    // It is told, and has to come again and look at the list.
                    Err(RecvError::Lagged(missed)) => {
                        self.place = Place::End;
                        event("missed", &MissedEvent { missed })
                    }
                }
            }
            Place::End => None,
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> Option<Event> {
    Event::default().event(name).json_data(data).ok()
}

impl From<&Announced> for FindingEvent {
    fn from(announced: &Announced) -> Self {
        Self {
            trace_id: announced.trace_id.to_string(),
            client_span_id: announced.client_span_id.to_string(),
            is_revision: announced.is_revision,
            started_unix_seconds: announced.started_ns.map(seconds),
            client_service: announced.client_service.clone(),
            server_service: announced.server_service.clone(),
            route: announced.route.clone(),
            method: announced.method.clone(),
            path: announced.path.clone(),
            gap_seconds: announced.gap_ns.map(seconds),
            unexplained_seconds: announced.unexplained_ns.map(seconds),
            causes: announced.causes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::announcements::Announcements;
    use crate::store::verdict_row::{Before, Written};
    use skewtap_core::audit::{KnownClocks, audit};
    use skewtap_core::policy::Policy;
    use skewtap_simulator::scenario::Scenario;
    use skewtap_simulator::world::World;

    fn listener(announcements: &Announcements) -> Listener {
        Listener {
            findings: announcements.listen(),
            stopping: CancellationToken::new(),
            place: Place::Start,
            _room: Listeners::default().0.try_acquire_owned().unwrap(),
        }
    }

    fn tell(announcements: &Announcements, flagged: bool, written: &Written) {
        let observed = Scenario::healthy(1_000_000).observe(&World::PLAIN);
        let verdict = audit(&observed, &KnownClocks::default(), &Policy::default()).unwrap();
        let verdict = skewtap_core::verdict::Verdict { flagged, ..verdict };
        announcements.tell(&verdict, written);
    }

    async fn name_of_next(listener: &mut Listener) -> Option<String> {
        let text = format!("{:?}", listener.next().await?);
        let names = ["ready", "finding", "missed"].into_iter();
        let mut found = names.filter(|name| text.contains(&format!("event: {name}")));
        found.next().map(str::to_owned)
    }

    #[tokio::test]
    async fn a_listener_that_is_too_far_behind_is_told_and_let_go() {
        let announcements = Announcements::new();
        let (mut slow, mut quick) = (listener(&announcements), listener(&announcements));
        assert_eq!(name_of_next(&mut quick).await.unwrap(), "ready");
        assert_eq!(name_of_next(&mut slow).await.unwrap(), "ready");
        for _ in 0..300 {
            tell(&announcements, true, &Written::New);
            assert_eq!(name_of_next(&mut quick).await.unwrap(), "finding");
        }
        assert_eq!(name_of_next(&mut slow).await.unwrap(), "missed");
        assert!(slow.next().await.is_none());
    }

    #[tokio::test]
    async fn only_what_is_flagged_and_new_is_told() {
        let announcements = Announcements::new();
        let mut listener = listener(&announcements);
        assert_eq!(name_of_next(&mut listener).await.unwrap(), "ready");
        tell(&announcements, false, &Written::New);
        tell(&announcements, true, &Written::Kept);
        let before = Before {
            flagged: true,
            causes: vec![],
        };
        tell(&announcements, true, &Written::Revised(before));
        let Ok(only) = listener.findings.try_recv() else {
            panic!("the revision is told")
        };
        assert!(only.is_revision);
        assert!(listener.findings.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_stop_ends_the_stream() {
        let announcements = Announcements::new();
        let mut listener = listener(&announcements);
        assert_eq!(name_of_next(&mut listener).await.unwrap(), "ready");
        listener.stopping.cancel();
        assert!(listener.next().await.is_none());
    }
}
