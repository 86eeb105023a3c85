-- Version 1: jobs, their attempts, workers and queues, in a schema of their own.
-- Times are microseconds since 1970 in UTC, durations are microseconds. Arguments and results are opaque bytes, errors
-- opaque texts of JSON. Columns come widest first, so that rows have no gaps.
-- A job is written three times in its life, and each time it changes its place in a partial index: room is left in the
-- pages, and vacuum comes after thousands of changes rather than after a share of a table that may be large.

CREATE TABLE perdure.schema (
    version integer PRIMARY KEY,
    applied_at bigint NOT NULL
);

CREATE TABLE perdure.jobs (
    id uuid PRIMARY KEY,
    run_at bigint NOT NULL,
    created_at bigint NOT NULL,
    timeout bigint,
    delay bigint,
    started_at bigint,
    attempt_ended_at bigint,
    ended_at bigint,
    replayed_at bigint,
    parked_at bigint,
    priority integer NOT NULL CHECK (priority BETWEEN -100 AND 100),
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    recoveries integer NOT NULL DEFAULT 0 CHECK (recoveries >= 0),
    max_attempts integer,
    is_cancelling boolean NOT NULL DEFAULT FALSE,
    state text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL DEFAULT 'fresh' CHECK (lane IN ('fresh', 'retry')),
    delivery text COLLATE "C" NOT NULL CHECK (delivery IN ('at_least_once', 'at_most_once')),
    task text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    origin text COLLATE "C",
    unique_key text COLLATE "C",
    worker text COLLATE "C",
    retry text,
    reason text COLLATE "C",
    fingerprint text COLLATE "C",
    error text,
    error_words text COLLATE "C",
    args bytea NOT NULL,
    result bytea,
    CONSTRAINT jobs_worker_exactly_while_running CHECK ((state = 'running') = (worker IS NOT NULL)),
    CONSTRAINT jobs_end_exactly_when_ended CHECK (
        CASE
            WHEN ended_at IS NULL THEN state IN ('waiting', 'ready', 'running')
            ELSE state IN ('succeeded', 'dead', 'cancelled')
        END
    ),
    CONSTRAINT jobs_cancelling_only_while_running CHECK (state = 'running' OR NOT is_cancelling),
    CONSTRAINT jobs_dead_have_a_group CHECK (state <> 'dead' OR fingerprint IS NOT NULL)
)
WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_analyze_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1
);

CREATE INDEX jobs_ready ON perdure.jobs (queue, lane, priority DESC, run_at, id) WHERE state = 'ready';

CREATE INDEX jobs_waiting ON perdure.jobs (run_at, id) WHERE state = 'waiting';

CREATE INDEX jobs_running ON perdure.jobs (worker) WHERE state = 'running';

CREATE INDEX jobs_retrying ON perdure.jobs (queue) WHERE state = 'running' AND lane = 'retry';

CREATE INDEX jobs_cancelling ON perdure.jobs (worker) WHERE is_cancelling;

CREATE INDEX jobs_dead ON perdure.jobs (id) WHERE state = 'dead';

CREATE INDEX jobs_ended ON perdure.jobs (ended_at) WHERE state IN ('succeeded', 'cancelled');

-- [INV-12] One live job per task and unique key.
CREATE UNIQUE INDEX jobs_unique ON perdure.jobs (task, unique_key)
WHERE unique_key IS NOT NULL AND ended_at IS NULL;

CREATE TABLE perdure.attempts (
    job_id uuid NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    delay bigint,
    attempt integer NOT NULL CHECK (attempt > 0),
    outcome text COLLATE "C" NOT NULL CHECK (
        outcome IN ('failed', 'timeout', 'lost', 'snoozed', 'released', 'parked', 'cancelled')
    ),
    reason text,
    error text,
    worker text COLLATE "C" NOT NULL,
    PRIMARY KEY (job_id, attempt)
)
WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000
);

CREATE TABLE perdure.workers (
    id text COLLATE "C" PRIMARY KEY,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    pid integer NOT NULL,
    concurrency integer NOT NULL,
    host text NOT NULL,
    queues text NOT NULL,
    version text NOT NULL
)
WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500
);

CREATE TABLE perdure.queues (
    name text COLLATE "C" PRIMARY KEY,
    paused_at bigint NOT NULL,
    pause_reason text
);
