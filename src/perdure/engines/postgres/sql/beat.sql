-- beat: renews a worker's lease, unless the worker was struck off.
-- Parameters: worker, lease, now.
-- Rows: one (whether the lease was renewed).
-- Concurrency: a worker that was struck off cannot come back to life.
-- Indexes: the primary key of workers.
WITH renewed AS (
    UPDATE perdure.workers
    SET
        beat_at = /*+ now */,
        lease_until = /*+ now */ + :lease::bigint
    WHERE workers.id = :worker::text
    RETURNING workers.id
)

SELECT EXISTS (SELECT 1 FROM renewed)
