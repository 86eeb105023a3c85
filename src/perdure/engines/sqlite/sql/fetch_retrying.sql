-- fetch: how many jobs of a queue's retry lane are running, under all workers.
-- Parameters: queue.
-- Rows: one (count).
-- Concurrency: runs in the transaction of the claim, so that the cap is exact.
-- Indexes: perdure_jobs_retrying.
SELECT COUNT(*)
FROM perdure_jobs
WHERE
    state = 'running'
    AND lane = 'retry'
    AND queue = :queue
