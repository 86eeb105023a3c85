-- Version 4: schedules, and which of them made a job.
-- A schedule is one opaque document; what statements look at stands beside it.

ALTER TABLE perdure.jobs ADD COLUMN tick_at bigint, ADD COLUMN schedule text COLLATE "C";

-- [INV-21] One job per schedule and tick; a run that a person asked for has no tick.
CREATE UNIQUE INDEX jobs_tick ON perdure.jobs (schedule, tick_at) WHERE schedule IS NOT NULL;

CREATE INDEX jobs_schedule ON perdure.jobs (schedule, id) WHERE schedule IS NOT NULL;

CREATE INDEX jobs_unfinished ON perdure.jobs (schedule) WHERE schedule IS NOT NULL AND ended_at IS NULL;

CREATE TABLE perdure.schedules (
    name text COLLATE "C" PRIMARY KEY,
    next_at bigint,
    named_at bigint,
    is_queued boolean NOT NULL,
    revision text COLLATE "C" NOT NULL,
    document text NOT NULL
)
WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500
);

CREATE INDEX schedules_next ON perdure.schedules (next_at) WHERE next_at IS NOT NULL;

CREATE INDEX schedules_queued ON perdure.schedules (name) WHERE is_queued;
