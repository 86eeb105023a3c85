-- unpark: how many jobs of a queue's retry lane are running, for its cap.
-- Parameters: queue.
-- Rows: one (count).
-- Concurrency: runs under the write lock of the claim, so that the cap is exact.
-- Indexes: perdure_jobs_retrying.
SELECT COUNT(*)
FROM perdure_jobs
WHERE
    state = 'running'
    AND lane = 'retry'
    AND queue = :queue
