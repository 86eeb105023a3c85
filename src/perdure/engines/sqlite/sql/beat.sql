-- beat: renews a worker's lease, unless the worker was struck off.
-- Parameters: worker, now, lease_until.
-- Rows: none; the count of changed rows says whether the lease was renewed.
-- Concurrency: a worker that was struck off cannot come back to life.
-- Indexes: the primary key of perdure_workers.
UPDATE perdure_workers
SET
    beat_at = :now,
    lease_until = :lease_until
WHERE id = :worker
