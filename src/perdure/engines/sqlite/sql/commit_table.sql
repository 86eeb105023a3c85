-- commit: the table in which a connection lays out one batch of ended attempts; private to it and in memory.
-- Parameters: none.
-- Rows: none.
-- Concurrency: a temporary table is seen by its own connection only, and rolled back with the transaction.
-- Indexes: the rowid of the job is the primary key, so that the batch is joined by lookups in every case: a join that
--     the planner may turn round would, after an ANALYZE of a small table, read every job for each commit.
CREATE TEMPORARY TABLE IF NOT EXISTS perdure_ended (
    job INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    state TEXT NOT NULL,
    lane TEXT NOT NULL,
    queue TEXT,
    run_at INTEGER,
    delay INTEGER,
    failures INTEGER NOT NULL,
    recoveries INTEGER NOT NULL,
    reason TEXT,
    error TEXT,
    fingerprint TEXT,
    result
)
