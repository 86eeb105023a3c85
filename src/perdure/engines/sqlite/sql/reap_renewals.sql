-- reap: the newest renewal of each registered worker's lease.
-- Parameters: now.
-- Rows: (id, beat_at, the lease's length, what is left of it).
-- Concurrency: reads only.
-- Indexes: none; the table has one row per worker.
SELECT
    id,
    beat_at,
    lease_until - beat_at,
    lease_until - :now
FROM perdure_workers
