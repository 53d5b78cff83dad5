//! A chart as a page has it: a table, and what the script needs to draw it.

/// A chart. The script draws it from the rows of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chart {
    /// Its name in the page.
    pub(super) id: &'static str,
    /// `points`, `lines` or `bars`.
    pub(super) kind: &'static str,
    /// What it shows.
    pub(super) title: String,
    /// What the horizontal axis shows, with its unit.
    pub(super) x_label: &'static str,
    /// What the vertical axis shows, with its unit.
    pub(super) y_label: &'static str,
    /// Whether the horizontal axis is the time of day.
    pub(super) x_is_time: bool,
    /// The meaning of each colour.
    pub(super) keys: Vec<Key>,
    /// A timer's rhythm to draw behind the points.
    pub(super) beat: Option<Beat>,
    /// The heads of the table's columns.
    pub(super) columns: Vec<String>,
    /// The rows of the table.
    pub(super) rows: Vec<ChartRow>,
}

/// The meaning of a colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// The class that has the colour.
    pub(super) class: String,
    /// What it stands for.
    pub(super) words: String,
}

impl Key {
    /// The `nth` colour, counted from 0, of a drawing of bars.
    pub(super) fn nth(nth: usize, words: &str) -> Self {
        Self {
            class: format!("key-{}", nth.saturating_add(1)),
            words: words.to_owned(),
        }
    }

    /// The colours of a drawing of points.
    pub(super) fn of_points() -> Vec<Self> {
        ["ordinary", "flagged"]
            .map(|kind| Self {
                class: format!("key-{kind}"),
                words: kind.to_owned(),
            })
            .to_vec()
    }
}

/// A rhythm, in seconds as [`plain_seconds`] writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    /// From one beat to the next.
    pub(super) period: String,
    /// How long the client looks after each beat.
    pub(super) looking: String,
    /// Where the first beat is.
    pub(super) phase: String,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChartRow {
    /// Where it leads.
    pub(super) href: Option<String>,
    /// What the script reads, by name.
    pub(super) data: Vec<(&'static str, String)>,
    /// What people read.
    pub(super) cells: Vec<String>,
}

/// What charts of counts have on their vertical axis.
pub(super) const EXCHANGES: &str = "exchanges";

/// Seconds to the nanosecond, as scripts read them.
pub(super) fn plain_seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
