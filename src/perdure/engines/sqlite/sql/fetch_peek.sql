-- fetch: whether a queue has anything ready, without taking the write lock.
-- Parameters: queue.
-- Rows: one (1) if it has, else none.
-- Concurrency: a hint only; the claim itself decides.
-- Indexes: perdure_jobs_ready.
SELECT 1
FROM perdure_jobs
WHERE
    state = 'ready'
    AND queue = :queue
LIMIT 1
