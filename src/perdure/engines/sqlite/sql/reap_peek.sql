-- reap: whether any worker's lease has run out, without taking the write lock.
-- Parameters: now.
-- Rows: one (1) if so, else none.
-- Concurrency: a hint only; the reap itself decides.
-- Indexes: none; the table has one row per worker.
SELECT 1
FROM perdure_workers
WHERE lease_until <= :now
LIMIT 1
