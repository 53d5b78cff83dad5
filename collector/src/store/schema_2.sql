-- The second schema: documents apart from what filters read, names of edges written once, and
-- counts by time, so that plots of a million exchanges need not read them. Like the first,
-- this file does not change. What is old is filled in by second_schema.rs.

-- Who called whom, for what. '' stands for a name that nothing gives.
CREATE TABLE edge (
    id             INTEGER PRIMARY KEY,
    client_service TEXT NOT NULL,
    server_service TEXT NOT NULL,
    route          TEXT NOT NULL,
    UNIQUE (client_service, server_service, route)
) STRICT;

ALTER TABLE verdict RENAME TO first_verdict;
DROP INDEX verdict_by_start;
DROP INDEX flagged_verdict_by_start;
DROP INDEX verdict_by_age;

-- Times are nanoseconds; null where unknown.
CREATE TABLE verdict (
    id               INTEGER PRIMARY KEY,
    trace_id         BLOB NOT NULL,    -- 16 bytes
    client_span_id   BLOB NOT NULL,    -- 8 bytes
    revision         INTEGER NOT NULL, -- 1, then one more for each verdict on more evidence
    evidence         INTEGER NOT NULL, -- observations and stamps it rests on
    stored_ns        INTEGER NOT NULL, -- when this revision was written, collector's clock
    started_ns       INTEGER NOT NULL, -- when the exchange began, since the Unix epoch
    flagged          INTEGER NOT NULL, -- 0 or 1
    edge             INTEGER NOT NULL,
    causes           TEXT NOT NULL,    -- names, a comma before, between and after; '' for none
    client_ns        INTEGER,          -- length of the client's span
    server_ns        INTEGER,          -- length of the server's span
    wire_ns          INTEGER,          -- request out to response in, between proxy and server
    gap_ns           INTEGER,          -- client minus server, signed
    lag_ns           INTEGER,          -- what the client surely took after the response was there
    unexplained_ns   INTEGER,
    UNIQUE (trace_id, client_span_id)
) STRICT;

CREATE TABLE verdict_document (
    id           INTEGER PRIMARY KEY,  -- that of the verdict
    verdict      BLOB NOT NULL,        -- JSON, packed
    observations BLOB                  -- an ExportTraceServiceRequest in protobuf, packed
) STRICT;

CREATE TRIGGER verdict_document_goes_with_verdict AFTER DELETE ON verdict BEGIN
    DELETE FROM verdict_document WHERE id = old.id;
END;

-- Exchanges by when they began, edge and size of the gap. The same twice: by minute and by hour.
CREATE TABLE gap_count (
    period_s  INTEGER NOT NULL, -- length of the period: 60 or 3600
    start_s   INTEGER NOT NULL, -- its start, since the Unix epoch
    edge      INTEGER NOT NULL,
    bin       INTEGER NOT NULL, -- see gap_bin.rs
    exchanges INTEGER NOT NULL,
    flagged   INTEGER NOT NULL,
    PRIMARY KEY (period_s, start_s, edge, bin)
) STRICT, WITHOUT ROWID;

-- Exchanges with a finding, likewise.
CREATE TABLE cause_count (
    period_s  INTEGER NOT NULL,
    start_s   INTEGER NOT NULL,
    edge      INTEGER NOT NULL,
    cause     TEXT NOT NULL,
    exchanges INTEGER NOT NULL,
    PRIMARY KEY (period_s, start_s, edge, cause)
) STRICT, WITHOUT ROWID;
