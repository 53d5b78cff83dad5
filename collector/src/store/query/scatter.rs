//! Single exchanges as points: how long the server took, and how long the client lagged.

use rusqlite::Connection;
use rusqlite::types::Type;
use skewtap_core::ids::{SpanId, TraceId};

use super::aggregates::Window;
use super::{EdgeFilter, Queries, QueryError};

/// Points of one answer at most.
pub(crate) const MOST_POINTS: usize = 2_000;

/// Edges that points are taken from at most; of more, those met first.
const MOST_EDGES: usize = 20;

/// Stretches that a window is cut into, so that a sample is spread over all of it.
const SLICES: i64 = 100;

/// Exchanges as points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scatter {
    /// The points, oldest first.
    pub(crate) points: Vec<Point>,
    /// Whether there are more exchanges than points: each of [`SLICES`] equal stretches of the
    /// window then shows the first that began in it.
    pub(crate) is_sample: bool,
}

/// One exchange. Lengths are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// The trace.
    pub(crate) trace_id: TraceId,
    /// The client's span.
    pub(crate) client_span_id: SpanId,
    /// When it began, since the Unix epoch.
    pub(crate) started_ns: i64,
    /// Length of the server's span.
    pub(crate) server_ns: Option<i64>,
    /// From request out to response in, between proxy and server.
    pub(crate) wire_ns: Option<i64>,
    /// What the client surely took after the response had been passed on to it.
    pub(crate) lag_ns: Option<i64>,
    /// Client minus server, signed.
    pub(crate) gap_ns: Option<i64>,
    /// Whether it is flagged.
    pub(crate) flagged: bool,
}

impl Queries {
    /// Exchanges of `window` on the edges that `filter` means, at most [`MOST_POINTS`].
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn scatter(
        &self,
        window: Window,
        filter: EdgeFilter,
    ) -> Result<Scatter, QueryError> {
        self.with_connection(move |connection| scatter(connection, window, &filter))
            .await
    }
}

fn scatter(
    connection: &Connection,
    window: Window,
    filter: &EdgeFilter,
) -> Result<Scatter, rusqlite::Error> {
    let reading = connection.unchecked_transaction()?;
    let mut edges = filter.numbers(&reading)?;
    let left_out = edges.len() > MOST_EDGES;
    edges.truncate(MOST_EDGES);
    let mut points = Vec::new();
    let most_of_edge = MOST_POINTS / edges.len().max(1);
    let mut is_sample = left_out;
    for edge in edges {
        let mut all = points_of(&reading, edge, window, most_of_edge + 1)?;
        if all.len() > most_of_edge {
            is_sample = true;
            all = sample(&reading, edge, window, most_of_edge)?;
        }
        points.append(&mut all);
    }
    points.sort_by_key(|point| point.started_ns);
    Ok(Scatter { points, is_sample })
}

/// The first of each slice. A few look-ups in an index, however many exchanges there are.
fn sample(
    connection: &Connection,
    edge: i64,
    window: Window,
    most: usize,
) -> Result<Vec<Point>, rusqlite::Error> {
    let slices = SLICES.min(i64::try_from(most).unwrap_or(SLICES)).max(1);
    let most_of_slice = most / usize::try_from(slices).unwrap_or(1);
    let width_ns = window.until_ns.saturating_sub(window.since_ns) / slices;
    let mut points = Vec::new();
    for slice in 0..slices {
        let since_ns = window
            .since_ns
            .saturating_add(width_ns.saturating_mul(slice));
        let is_last = slice + 1 == slices;
        let until_ns = if is_last {
            window.until_ns
        } else {
            since_ns.saturating_add(width_ns)
        };
        let of_slice = Window { since_ns, until_ns };
        points.append(&mut points_of(connection, edge, of_slice, most_of_slice)?);
    }
    Ok(points)
}

fn points_of(
    connection: &Connection,
    edge: i64,
    window: Window,
    most: usize,
) -> Result<Vec<Point>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT trace_id, client_span_id, started_ns, server_ns, wire_ns, lag_ns, gap_ns,
                 flagged
             FROM verdict INDEXED BY verdict_by_edge
             WHERE edge = ?1 AND started_ns >= ?2 AND started_ns < ?3
             ORDER BY started_ns, id LIMIT ?4",
        )?
        .query_map(
            (
                edge,
                window.since_ns,
                window.until_ns,
                i64::try_from(most).unwrap_or(i64::MAX),
            ),
            |row| {
                let bad_id = |column, e| {
                    rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(e))
                };
                Ok(Point {
                    trace_id: TraceId::from_bytes(&row.get::<_, Vec<u8>>(0)?)
                        .map_err(|e| bad_id(0, e))?,
                    client_span_id: SpanId::from_bytes(&row.get::<_, Vec<u8>>(1)?)
                        .map_err(|e| bad_id(1, e))?,
                    started_ns: row.get(2)?,
                    server_ns: row.get(3)?,
                    wire_ns: row.get(4)?,
                    lag_ns: row.get(5)?,
                    gap_ns: row.get(6)?,
                    flagged: row.get(7)?,
                })
            },
        )?
        .collect()
}
