-- Version 1: jobs, their attempts, workers and queues.
-- All names begin with perdure_, so that the file can be shared with an application's own tables.
-- Sets are spelled with = and OR: SQLite builds a table for each IN of more than two values, in every statement.
-- Arguments and results are kept as text, or as a blob where they are not text.
-- Times are microseconds since 1970 in UTC, durations are microseconds, texts of JSON are opaque.

CREATE TABLE perdure_schema (
    version INTEGER NOT NULL PRIMARY KEY,
    applied_at INTEGER NOT NULL
);

CREATE TABLE perdure_jobs (
    id TEXT NOT NULL PRIMARY KEY,
    task TEXT NOT NULL,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    lane TEXT NOT NULL DEFAULT 'fresh' CHECK (lane = 'fresh' OR lane = 'retry'),
    priority INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
    run_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    recoveries INTEGER NOT NULL DEFAULT 0 CHECK (recoveries >= 0),
    delivery TEXT NOT NULL CHECK (delivery = 'at_least_once' OR delivery = 'at_most_once'),
    created_at INTEGER NOT NULL,
    origin TEXT,
    unique_key TEXT,
    max_attempts INTEGER,
    retry TEXT,
    timeout INTEGER,
    delay INTEGER,
    reason TEXT,
    fingerprint TEXT,
    worker TEXT,
    started_at INTEGER,
    attempt_ended_at INTEGER,
    ended_at INTEGER,
    replayed_at INTEGER,
    parked_at INTEGER,
    is_cancelling INTEGER NOT NULL DEFAULT 0 CHECK (is_cancelling = 0 OR is_cancelling = 1),
    args NOT NULL,
    error TEXT,
    result,
    CHECK ((state = 'running') = (worker IS NOT NULL)),
    CHECK (
        CASE
            WHEN ended_at IS NULL THEN state = 'waiting' OR state = 'ready' OR state = 'running'
            ELSE state = 'succeeded' OR state = 'dead' OR state = 'cancelled'
        END
    ),
    CHECK (state = 'running' OR is_cancelling = 0),
    CHECK (state <> 'dead' OR fingerprint IS NOT NULL)
);

-- The state stands in these indexes once more, so that claims and counts need not look at the jobs themselves.
CREATE INDEX perdure_jobs_ready ON perdure_jobs (queue, lane, priority DESC, run_at, id, state) WHERE state = 'ready';

CREATE INDEX perdure_jobs_waiting ON perdure_jobs (run_at, queue, lane, state) WHERE state = 'waiting';

CREATE INDEX perdure_jobs_running ON perdure_jobs (worker) WHERE state = 'running';

CREATE INDEX perdure_jobs_retrying ON perdure_jobs (queue) WHERE state = 'running' AND lane = 'retry';

CREATE INDEX perdure_jobs_cancelling ON perdure_jobs (worker) WHERE is_cancelling = 1;

CREATE INDEX perdure_jobs_dead ON perdure_jobs (id) WHERE state = 'dead';

CREATE INDEX perdure_jobs_cancelled ON perdure_jobs (id) WHERE state = 'cancelled';

CREATE INDEX perdure_jobs_ended ON perdure_jobs (ended_at, queue, state) WHERE state = 'succeeded' OR state = 'cancelled';

-- [INV-12] One live job per task and unique key.
CREATE UNIQUE INDEX perdure_jobs_unique ON perdure_jobs (task, unique_key)
WHERE unique_key IS NOT NULL AND ended_at IS NULL;

CREATE TABLE perdure_attempts (
    job_id TEXT NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt > 0),
    outcome TEXT NOT NULL CHECK (
        outcome = 'failed' OR outcome = 'timeout' OR outcome = 'lost' OR outcome = 'snoozed'
        OR outcome = 'released' OR outcome = 'parked' OR outcome = 'cancelled'
    ),
    reason TEXT,
    error TEXT,
    worker TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    delay INTEGER,
    PRIMARY KEY (job_id, attempt)
) WITHOUT ROWID;

CREATE TABLE perdure_workers (
    id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    queues TEXT NOT NULL,
    concurrency INTEGER NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE perdure_queues (
    name TEXT NOT NULL PRIMARY KEY,
    paused_at INTEGER NOT NULL,
    pause_reason TEXT
) WITHOUT ROWID;
