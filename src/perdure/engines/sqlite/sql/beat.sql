-- beat: renews a worker's lease, unless it has run out.
-- Parameters: worker, now, lease_until.
-- Rows: none; the count of changed rows says whether the lease was renewed.
-- Concurrency: a lease that was found expired by anyone cannot come back to life.
-- Indexes: the primary key of perdure_workers.
UPDATE perdure_workers
SET
    beat_at = :now,
    lease_until = :lease_until
WHERE
    id = :worker
    AND lease_until > :now
