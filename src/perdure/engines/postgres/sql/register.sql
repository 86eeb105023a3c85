-- register: counts a worker among the living; a repeated register renews it.
-- Parameters: worker, host, pid, queues (a JSON array), concurrency, version, lease, now.
-- Rows: none.
-- Concurrency: one row per worker id.
-- Indexes: the primary key of workers.
INSERT INTO perdure.workers (
    id,
    host,
    pid,
    queues,
    concurrency,
    version,
    started_at,
    beat_at,
    lease_until
)
VALUES (
    :worker::text,
    :host::text,
    :pid::integer,
    :queues::text,
    :concurrency::integer,
    :version::text,
    /*+ now */,
    /*+ now */,
    /*+ now */ + :lease::bigint
)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host,
    pid = excluded.pid,
    queues = excluded.queues,
    concurrency = excluded.concurrency,
    version = excluded.version,
    beat_at = excluded.beat_at,
    lease_until = excluded.lease_until
