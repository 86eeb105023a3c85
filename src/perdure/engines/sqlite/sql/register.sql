-- register: counts a worker among the living; a repeated register renews it.
-- Parameters: as listed in the columns.
-- Rows: none.
-- Concurrency: one row per worker id.
-- Indexes: the primary key of perdure_workers.
INSERT INTO perdure_workers (
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
VALUES (:id, :host, :pid, :queues, :concurrency, :version, :now, :now, :lease_until)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host,
    pid = excluded.pid,
    queues = excluded.queues,
    concurrency = excluded.concurrency,
    version = excluded.version,
    beat_at = excluded.beat_at,
    lease_until = excluded.lease_until
