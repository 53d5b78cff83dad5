//! How many exchanges began in each minute and hour, by edge, size of the gap, and cause.
//! Kept beside the verdicts, in the same transaction, so that the two always agree.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, Transaction};

use super::gap_bin;
use super::gap_bins::{BinCount, GapBins};

/// Lengths of the periods that are counted, in seconds. Each is a multiple of the one before.
pub(super) const PERIODS_S: [i64; 2] = [MINUTE_S, HOUR_S];

/// The shorter period.
pub(super) const MINUTE_S: i64 = 60;

/// The longer period.
pub(super) const HOUR_S: i64 = 3_600;

/// What of a verdict is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    /// When the exchange began, in nanoseconds since the Unix epoch.
    pub(super) started_ns: i64,
    /// The number of its edge.
    pub(super) edge: i64,
    /// Client minus server in nanoseconds.
    pub(super) gap_ns: Option<i64>,
    /// Whether it is flagged.
    pub(super) flagged: bool,
    /// Names of causes, a comma before, between and after.
    pub(super) causes: String,
}

impl Counted {
    /// Of a row that has these columns of the table of verdicts.
    pub(super) fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            started_ns: row.get("started_ns")?,
            edge: row.get("edge")?,
            gap_ns: row.get("gap_ns")?,
            flagged: row.get("flagged")?,
            causes: row.get("causes")?,
        })
    }
}

/// Changes that are not written yet.
#[derive(Debug, Default)]
pub(super) struct CountChanges {
    /// Exchanges by size class, by start of the minute and edge.
    gaps: HashMap<(i64, i64), GapBins>,
    /// Exchanges, by start of the minute, edge and cause.
    causes: HashMap<(i64, i64, String), i64>,
}

impl CountChanges {
    /// Counts a verdict that is added.
    pub(super) fn add(&mut self, counted: &Counted) {
        self.change(counted, 1);
    }

    /// Takes back a verdict that is replaced or deleted.
    pub(super) fn take_back(&mut self, counted: &Counted) {
        self.change(counted, -1);
    }

    /// Writes all changes.
    pub(super) fn write(self, transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
        for period_s in PERIODS_S {
            let mut gaps: HashMap<(i64, i64), GapBins> = HashMap::new();
            for ((minute, edge), bins) in &self.gaps {
                let sum = gaps.entry((start_of(*minute, period_s), *edge));
                sum.or_default().add_all(bins);
            }
            write_gaps(transaction, period_s, &gaps)?;
            let mut causes: HashMap<(i64, i64, &str), i64> = HashMap::new();
            for ((minute, edge, cause), exchanges) in &self.causes {
                let key = (start_of(*minute, period_s), *edge, cause.as_str());
                *causes.entry(key).or_default() += exchanges;
            }
            write_causes(transaction, period_s, &causes)?;
        }
        Ok(())
    }

    fn change(&mut self, counted: &Counted, by: i64) {
        let minute = start_of(counted.started_ns.div_euclid(1_000_000_000), MINUTE_S);
        let count = BinCount {
            exchanges: by,
            flagged: by * i64::from(counted.flagged),
        };
        let bins = self.gaps.entry((minute, counted.edge)).or_default();
        bins.add(gap_bin::of(counted.gap_ns), count);
        for cause in names(&counted.causes) {
            let key = (minute, counted.edge, cause.to_owned());
            *self.causes.entry(key).or_default() += by;
        }
    }
}

/// The names in a list of causes as the store has it.
pub(super) fn names(causes: &str) -> impl Iterator<Item = &str> {
    causes.split(',').filter(|name| !name.is_empty())
}

/// The start of the period that holds `time_s`, both in seconds since the Unix epoch.
pub(super) fn start_of(time_s: i64, period_s: i64) -> i64 {
    time_s.saturating_sub(time_s.rem_euclid(period_s))
}

fn write_gaps(
    transaction: &Transaction<'_>,
    period_s: i64,
    gaps: &HashMap<(i64, i64), GapBins>,
) -> Result<(), rusqlite::Error> {
    let mut there = transaction.prepare_cached(
        "SELECT bins FROM gap_count WHERE period_s = ?1 AND start_s = ?2 AND edge = ?3",
    )?;
    let mut put = transaction.prepare_cached(
        "INSERT OR REPLACE INTO gap_count (period_s, start_s, edge, exchanges, flagged, bins)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let mut delete = transaction.prepare_cached(
        "DELETE FROM gap_count WHERE period_s = ?1 AND start_s = ?2 AND edge = ?3",
    )?;
    for ((start_s, edge), changes) in gaps {
        let key = (period_s, start_s, edge);
        let bins = there.query_row(key, |row| row.get(0)).optional()?;
        let mut bins: GapBins = bins.unwrap_or_default();
        bins.add_all(changes);
        bins.drop_empty();
        let total = bins.total();
        if total.exchanges == 0 {
            delete.execute(key)?;
        } else {
            put.execute((
                period_s,
                start_s,
                edge,
                total.exchanges,
                total.flagged,
                bins,
            ))?;
        }
    }
    Ok(())
}

fn write_causes(
    transaction: &Transaction<'_>,
    period_s: i64,
    causes: &HashMap<(i64, i64, &str), i64>,
) -> Result<(), rusqlite::Error> {
    let mut add = transaction.prepare_cached(
        "INSERT INTO cause_count (period_s, start_s, edge, cause, exchanges)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET exchanges = exchanges + excluded.exchanges",
    )?;
    let mut drop_empty = transaction.prepare_cached(
        "DELETE FROM cause_count
         WHERE period_s = ?1 AND start_s = ?2 AND edge = ?3 AND cause = ?4 AND exchanges <= 0",
    )?;
    for ((start_s, edge, cause), exchanges) in causes {
        if *exchanges == 0 {
            continue;
        }
        add.execute((period_s, start_s, edge, cause, exchanges))?;
        if *exchanges < 0 {
            drop_empty.execute((period_s, start_s, edge, cause))?;
        }
    }
    Ok(())
}
