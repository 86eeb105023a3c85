-- Version 5: the forwarding of dead jobs to their sinks.
-- A row exists while its job is dead and was to be forwarded. No table that is in use is locked.

CREATE TABLE perdure.forwards (
    job_id uuid PRIMARY KEY,
    next_at bigint,
    tried_at bigint,
    forwarded_at bigint,
    attempt integer NOT NULL,
    tries integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    state text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'failing', 'stopped', 'forwarded')),
    queue text COLLATE "C" NOT NULL,
    sink text,
    error text,
    CONSTRAINT forwards_next_exactly_while_due CHECK ((state IN ('pending', 'failing')) = (next_at IS NOT NULL)),
    CONSTRAINT forwards_moment_exactly_when_forwarded CHECK ((state = 'forwarded') = (forwarded_at IS NOT NULL))
)
WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000
);

CREATE INDEX forwards_due ON perdure.forwards (next_at, queue) WHERE next_at IS NOT NULL;

CREATE INDEX forwards_state ON perdure.forwards (state);
