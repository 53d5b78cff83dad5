//! Reading the counts of a window.

use rusqlite::{Connection, Row};

use super::EdgeFilter;
use super::aggregates::Window;
use super::edges_matching::list;
use crate::store::counts::{HOUR_S, MINUTE_S, start_of};
use crate::store::gap_bins::GapBins;

/// Periods of one answer at most.
const MOST_PERIODS: i64 = 240;

/// Windows of at most this many seconds are summed up from minutes, longer ones from hours.
const LONGEST_BY_MINUTE_S: i64 = 12 * HOUR_S;

/// Lengths of the periods of an answer, in seconds, as people are used to them.
const STEPS_S: [i64; 14] = [
    60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000,
];

/// The counted periods of a window, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    period_s: i64,
    since_s: i64,
    until_s: i64,
}

/// A row of `gap_count`.
pub(super) struct GapCount {
    pub(super) start_s: i64,
    pub(super) edge: i64,
    pub(super) bins: GapBins,
}

/// A row of `cause_count`.
pub(super) struct CauseCount {
    pub(super) start_s: i64,
    pub(super) edge: i64,
    pub(super) cause: String,
    pub(super) exchanges: u64,
}

impl Counted {
    pub(super) fn within(window: Window) -> Self {
        let since_s = window.since_ns.div_euclid(1_000_000_000);
        let until_s = window.until_ns.saturating_sub(1).div_euclid(1_000_000_000);
        let period_s = if until_s.saturating_sub(since_s) <= LONGEST_BY_MINUTE_S {
            MINUTE_S
        } else {
            HOUR_S
        };
        let since_s = start_of(since_s, period_s);
        Self {
            period_s,
            since_s,
            until_s: start_of(until_s, period_s)
                .saturating_add(period_s)
                .max(since_s),
        }
    }

    pub(super) fn window(self) -> Window {
        Window {
            since_ns: nanoseconds(self.since_s),
            until_ns: nanoseconds(self.until_s),
        }
    }

    /// The shortest step that gives no more periods than an answer holds.
    pub(super) fn step_s(self) -> i64 {
        let enough = self.until_s.saturating_sub(self.since_s) / MOST_PERIODS;
        let mut steps = STEPS_S.into_iter().filter(|step| *step >= self.period_s);
        steps
            .find(|step| *step >= enough)
            // A multiple of whole hours, however long the window.
            .unwrap_or_else(|| (enough / HOUR_S + 1).saturating_mul(HOUR_S))
    }

    pub(super) fn gaps(
        self,
        connection: &Connection,
        filter: &EdgeFilter,
        mut each: impl FnMut(GapCount),
    ) -> Result<(), rusqlite::Error> {
        let columns = "start_s, edge, bins FROM gap_count";
        self.rows(connection, filter, columns, |row| {
            each(GapCount {
                start_s: row.get(0)?,
                edge: row.get(1)?,
                bins: row.get(2)?,
            });
            Ok(())
        })
    }

    pub(super) fn causes(
        self,
        connection: &Connection,
        filter: &EdgeFilter,
        mut each: impl FnMut(CauseCount),
    ) -> Result<(), rusqlite::Error> {
        let columns = "start_s, edge, cause, exchanges FROM cause_count";
        self.rows(connection, filter, columns, |row| {
            each(CauseCount {
                start_s: row.get(0)?,
                edge: row.get(1)?,
                cause: row.get(2)?,
                exchanges: row.get(3)?,
            });
            Ok(())
        })
    }

    fn rows(
        self,
        connection: &Connection,
        filter: &EdgeFilter,
        columns: &str,
        mut each: impl FnMut(&Row<'_>) -> Result<(), rusqlite::Error>,
    ) -> Result<(), rusqlite::Error> {
        let among = if filter.is_open() {
            String::new()
        } else {
            format!(" AND edge IN ({})", list(&filter.numbers(connection)?))
        };
        let mut statement = connection.prepare(&format!(
            "SELECT {columns} WHERE period_s = ?1 AND start_s >= ?2 AND start_s < ?3{among}"
        ))?;
        let mut rows = statement.query((self.period_s, self.since_s, self.until_s))?;
        while let Some(row) = rows.next()? {
            each(row)?;
        }
        Ok(())
    }
}

pub(super) fn nanoseconds(seconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000)
}
