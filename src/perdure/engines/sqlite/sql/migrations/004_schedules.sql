-- Version 4: schedules, and which of them made a job.
-- A schedule is one opaque document; what statements look at stands beside it.

ALTER TABLE perdure_jobs ADD COLUMN schedule TEXT;

ALTER TABLE perdure_jobs ADD COLUMN tick_at INTEGER;

-- [INV-21] One job per schedule and tick; a run that a person asked for has no tick.
CREATE UNIQUE INDEX perdure_jobs_tick ON perdure_jobs (schedule, tick_at) WHERE schedule IS NOT NULL;

CREATE INDEX perdure_jobs_schedule ON perdure_jobs (schedule, id) WHERE schedule IS NOT NULL;

CREATE INDEX perdure_jobs_unfinished ON perdure_jobs (schedule) WHERE schedule IS NOT NULL AND ended_at IS NULL;

CREATE TABLE perdure_schedules (
    name TEXT NOT NULL PRIMARY KEY,
    revision TEXT NOT NULL,
    next_at INTEGER,
    is_queued INTEGER NOT NULL CHECK (is_queued = 0 OR is_queued = 1),
    named_at INTEGER,
    document TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX perdure_schedules_next ON perdure_schedules (next_at) WHERE next_at IS NOT NULL;

CREATE INDEX perdure_schedules_queued ON perdure_schedules (name) WHERE is_queued = 1;
