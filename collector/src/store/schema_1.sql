-- The first schema. A later one is a new step in migrations.rs; this file does not change.

-- Batches of observations as they came, until every exchange they belong to is settled.
-- AUTOINCREMENT: a number is never given out twice, even after the log was emptied.
CREATE TABLE observation_log (
    batch       INTEGER PRIMARY KEY AUTOINCREMENT,
    received_ns INTEGER NOT NULL, -- collector's clock, since the Unix epoch
    body        BLOB NOT NULL     -- an ExportTraceServiceRequest in protobuf
) STRICT;

CREATE TABLE verdict (
    id               INTEGER PRIMARY KEY,
    trace_id         BLOB NOT NULL,    -- 16 bytes
    client_span_id   BLOB NOT NULL,    -- 8 bytes
    revision         INTEGER NOT NULL, -- 1, then one more for each verdict on more evidence
    evidence         INTEGER NOT NULL, -- observations and stamps it rests on
    stored_ns        INTEGER NOT NULL, -- when this revision was written, collector's clock
    started_ns       INTEGER NOT NULL, -- when the exchange began, since the Unix epoch
    flagged          INTEGER NOT NULL, -- 0 or 1
    client_service   TEXT,
    server_service   TEXT,
    route            TEXT,
    causes           TEXT NOT NULL,    -- names, a comma before, between and after; '' for none
    gap_ns           INTEGER,
    unexplained_ns   INTEGER,
    document         TEXT NOT NULL,    -- the verdict in JSON; last, so that filters need not read it
    UNIQUE (trace_id, client_span_id)
) STRICT;

CREATE INDEX verdict_by_start ON verdict (started_ns, id);
CREATE INDEX flagged_verdict_by_start ON verdict (started_ns, id) WHERE flagged = 1;
CREATE INDEX verdict_by_age ON verdict (stored_ns);
