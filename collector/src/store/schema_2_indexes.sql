-- The rest of the second schema, for when the old verdicts have been copied.

DROP TABLE first_verdict;

-- With what the commonest filters ask for, so that they need not look at the rows themselves.
CREATE INDEX verdict_by_start ON verdict (started_ns, id, edge, gap_ns);
CREATE INDEX verdict_by_edge ON verdict (edge, started_ns, id, gap_ns);
CREATE INDEX flagged_verdict_by_start ON verdict (started_ns, id, edge, gap_ns) WHERE flagged = 1;
CREATE INDEX verdict_with_cause_by_start ON verdict (started_ns, id, edge, causes) WHERE causes <> '';
CREATE INDEX verdict_by_age ON verdict (stored_ns);
