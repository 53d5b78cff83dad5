-- The third schema: counts of gaps in one row for each period and edge. Like the others, this
-- file does not change. What is old is counted anew by third_schema.rs.

DROP TABLE gap_count;
DELETE FROM cause_count;

-- Exchanges by when they began, edge and size of the gap. The same twice: by minute and by hour.
CREATE TABLE gap_count (
    period_s  INTEGER NOT NULL, -- length of the period: 60 or 3600
    start_s   INTEGER NOT NULL, -- its start, since the Unix epoch
    edge      INTEGER NOT NULL,
    exchanges INTEGER NOT NULL,
    flagged   INTEGER NOT NULL,
    bins      BLOB NOT NULL,    -- the same by size class, see gap_bins.rs
    PRIMARY KEY (period_s, start_s, edge)
) STRICT, WITHOUT ROWID;
