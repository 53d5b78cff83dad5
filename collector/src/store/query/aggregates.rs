//! Sums over many exchanges, for plots: read from counts, so that their cost does not grow
//! with the number of exchanges.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, Row};
use skewtap_core::clock::Interval;

use super::counted::{Counted, nanoseconds};
use super::quantiles::Quantiles;
use super::{EdgeFilter, Queries, QueryError, known};
use crate::store::counts::start_of;
use crate::store::gap_bin;
use crate::store::gap_bins::GapBins;

/// Edges of one answer.
const MOST_EDGES: usize = 1_000;

/// A stretch of time in which exchanges began; in nanoseconds since the Unix epoch, the end
/// not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Its start.
    pub(crate) since_ns: i64,
    /// Its end.
    pub(crate) until_ns: i64,
}

/// What was seen on each edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edges {
    /// The window that is summed up: the one asked for, rounded outward to whole minutes or hours.
    pub(crate) covered: Window,
    /// The edges, those with most flagged exchanges first.
    pub(crate) edges: Vec<EdgeSummary>,
    /// Edges beyond those, which there was no room for.
    pub(crate) left_out: usize,
}

/// What was seen on one edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EdgeSummary {
    /// `service.name` of the client.
    pub(crate) client_service: Option<String>,
    /// `service.name` of the server.
    pub(crate) server_service: Option<String>,
    /// Low-cardinality path.
    pub(crate) route: Option<String>,
    /// Exchanges.
    pub(crate) exchanges: u64,
    /// Flagged ones among them.
    pub(crate) flagged: u64,
    /// Client minus server; `None` when no gap is known.
    pub(crate) gap: Option<Quantiles>,
    /// Exchanges by cause, in the order of the names.
    pub(crate) causes: BTreeMap<String, u64>,
}

/// Gaps over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GapSeries {
    /// The window that is summed up.
    pub(crate) covered: Window,
    /// Length of each period, in seconds.
    pub(crate) step_s: i64,
    /// Periods in which exchanges began, oldest first.
    pub(crate) periods: Vec<GapPeriod>,
}

/// The gaps of one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GapPeriod {
    /// Its start, in nanoseconds since the Unix epoch.
    pub(crate) start_ns: i64,
    /// Exchanges.
    pub(crate) exchanges: u64,
    /// Flagged ones among them.
    pub(crate) flagged: u64,
    /// Client minus server; `None` when no gap is known.
    pub(crate) gap: Option<Quantiles>,
}

/// How many exchanges had which gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GapHistogram {
    /// The window that is summed up.
    pub(crate) covered: Window,
    /// Size classes that occurred, smallest gap first.
    pub(crate) bins: Vec<GapBin>,
    /// Exchanges whose gap is not known.
    pub(crate) unknown: u64,
}

/// One size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GapBin {
    /// Its gaps in nanoseconds, both ends included.
    pub(crate) within: Interval,
    /// Exchanges.
    pub(crate) exchanges: u64,
    /// Flagged ones among them.
    pub(crate) flagged: u64,
}

/// Findings over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CauseSeries {
    /// The window that is summed up.
    pub(crate) covered: Window,
    /// Length of each period, in seconds.
    pub(crate) step_s: i64,
    /// Periods with findings, oldest first, and by cause within one period.
    pub(crate) periods: Vec<CausePeriod>,
}

/// The findings of one cause in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CausePeriod {
    /// Its start, in nanoseconds since the Unix epoch.
    pub(crate) start_ns: i64,
    /// The cause.
    pub(crate) cause: String,
    /// Exchanges it was found in.
    pub(crate) exchanges: u64,
}

impl Queries {
    /// What was seen on each edge that `filter` means.
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn edges(
        &self,
        window: Window,
        filter: EdgeFilter,
    ) -> Result<Edges, QueryError> {
        self.with_connection(move |connection| edges(connection, window, &filter))
            .await
    }

    /// The gaps over time on the edges that `filter` means, all together.
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn gap_series(
        &self,
        window: Window,
        filter: EdgeFilter,
    ) -> Result<GapSeries, QueryError> {
        self.with_connection(move |connection| gap_series(connection, window, &filter))
            .await
    }

    /// How many exchanges on the edges that `filter` means had which gap.
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn gap_histogram(
        &self,
        window: Window,
        filter: EdgeFilter,
    ) -> Result<GapHistogram, QueryError> {
        self.with_connection(move |connection| gap_histogram(connection, window, &filter))
            .await
    }

    /// The findings over time on the edges that `filter` means, by cause.
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn cause_series(
        &self,
        window: Window,
        filter: EdgeFilter,
    ) -> Result<CauseSeries, QueryError> {
        self.with_connection(move |connection| cause_series(connection, window, &filter))
            .await
    }
}

fn edges(
    connection: &Connection,
    window: Window,
    filter: &EdgeFilter,
) -> Result<Edges, rusqlite::Error> {
    let reading = connection.unchecked_transaction()?;
    let counted = Counted::within(window);
    let mut sums: HashMap<i64, Sum> = HashMap::new();
    counted.gaps(&reading, filter, |count| {
        sums.entry(count.edge).or_default().add(&count.bins);
    })?;
    let mut causes: HashMap<i64, BTreeMap<String, u64>> = HashMap::new();
    counted.causes(&reading, filter, |count| {
        let of_edge = causes.entry(count.edge).or_default();
        *of_edge.entry(count.cause).or_default() += count.exchanges;
    })?;
    let mut sums: Vec<(i64, Sum)> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(edge, sum)| {
        (std::cmp::Reverse((sum.flagged, sum.exchanges)), *edge)
    });
    let left_out = sums.len().saturating_sub(MOST_EDGES);
    sums.truncate(MOST_EDGES);
    let mut names = reading
        .prepare_cached("SELECT client_service, server_service, route FROM edge WHERE id = ?1")?;
    let summaries: Result<Vec<_>, rusqlite::Error> = sums
        .into_iter()
        .map(|(edge, sum)| {
            let name = |row: &Row<'_>, at: usize| row.get(at).map(known);
            let (client_service, server_service, route) = names.query_row([edge], |row| {
                Ok((name(row, 0)?, name(row, 1)?, name(row, 2)?))
            })?;
            Ok(EdgeSummary {
                client_service,
                server_service,
                route,
                exchanges: sum.exchanges,
                flagged: sum.flagged,
                gap: sum.quantiles(),
                causes: causes.remove(&edge).unwrap_or_default(),
            })
        })
        .collect();
    Ok(Edges {
        covered: counted.window(),
        edges: summaries?,
        left_out,
    })
}

fn gap_series(
    connection: &Connection,
    window: Window,
    filter: &EdgeFilter,
) -> Result<GapSeries, rusqlite::Error> {
    let counted = Counted::within(window);
    let step_s = counted.step_s();
    let mut periods: BTreeMap<i64, Sum> = BTreeMap::new();
    counted.gaps(connection, filter, |count| {
        let start = start_of(count.start_s, step_s);
        periods.entry(start).or_default().add(&count.bins);
    })?;
    let periods = periods.into_iter().map(|(start_s, sum)| GapPeriod {
        start_ns: nanoseconds(start_s),
        exchanges: sum.exchanges,
        flagged: sum.flagged,
        gap: sum.quantiles(),
    });
    Ok(GapSeries {
        covered: counted.window(),
        step_s,
        periods: periods.collect(),
    })
}

fn gap_histogram(
    connection: &Connection,
    window: Window,
    filter: &EdgeFilter,
) -> Result<GapHistogram, rusqlite::Error> {
    let counted = Counted::within(window);
    let mut classes = GapBins::default();
    counted.gaps(connection, filter, |count| classes.add_all(&count.bins))?;
    let mut histogram = GapHistogram {
        covered: counted.window(),
        bins: Vec::new(),
        unknown: 0,
    };
    for (bin, count) in classes.iter() {
        let (exchanges, flagged) = (number(count.exchanges), number(count.flagged));
        match gap_bin::bounds(bin) {
            None => histogram.unknown += exchanges,
            Some(within) => histogram.bins.push(GapBin {
                within,
                exchanges,
                flagged,
            }),
        }
    }
    Ok(histogram)
}

fn cause_series(
    connection: &Connection,
    window: Window,
    filter: &EdgeFilter,
) -> Result<CauseSeries, rusqlite::Error> {
    let counted = Counted::within(window);
    let step_s = counted.step_s();
    let mut periods: BTreeMap<(i64, String), u64> = BTreeMap::new();
    counted.causes(connection, filter, |count| {
        let key = (start_of(count.start_s, step_s), count.cause);
        *periods.entry(key).or_default() += count.exchanges;
    })?;
    let periods = periods
        .into_iter()
        .map(|((start_s, cause), exchanges)| CausePeriod {
            start_ns: nanoseconds(start_s),
            cause,
            exchanges,
        });
    Ok(CauseSeries {
        covered: counted.window(),
        step_s,
        periods: periods.collect(),
    })
}

/// Exchanges of any number of periods and edges.
#[derive(Default)]
struct Sum {
    exchanges: u64,
    flagged: u64,
    bins: GapBins,
}

impl Sum {
    fn add(&mut self, bins: &GapBins) {
        let total = bins.total();
        self.exchanges = self.exchanges.saturating_add(number(total.exchanges));
        self.flagged = self.flagged.saturating_add(number(total.flagged));
        self.bins.add_all(bins);
    }

    fn quantiles(&self) -> Option<Quantiles> {
        let bins = self.bins.iter();
        Quantiles::of(bins.map(|(bin, count)| (bin, number(count.exchanges))))
    }
}

/// Counts in the store are not negative.
fn number(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}
