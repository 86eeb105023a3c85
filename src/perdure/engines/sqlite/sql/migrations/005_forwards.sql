-- Version 5: the forwarding of dead jobs to their sinks.
-- A row exists while its job is dead and was to be forwarded. The error is opaque text.

CREATE TABLE perdure_forwards (
    job_id TEXT NOT NULL PRIMARY KEY,
    attempt INTEGER NOT NULL,
    queue TEXT NOT NULL,
    sink TEXT,
    state TEXT NOT NULL CHECK (state = 'pending' OR state = 'failing' OR state = 'stopped' OR state = 'forwarded'),
    tries INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at INTEGER,
    tried_at INTEGER,
    forwarded_at INTEGER,
    error TEXT,
    CHECK ((state = 'pending' OR state = 'failing') = (next_at IS NOT NULL)),
    CHECK ((state = 'forwarded') = (forwarded_at IS NOT NULL))
) WITHOUT ROWID;

CREATE INDEX perdure_forwards_due ON perdure_forwards (next_at, queue) WHERE next_at IS NOT NULL;

CREATE INDEX perdure_forwards_state ON perdure_forwards (state);
