-- beat: what the store believes a worker is running.
-- Parameters: worker.
-- Rows: (id, attempt).
-- Concurrency: runs in the transaction of the beat.
-- Indexes: perdure_jobs_running.
SELECT
    id,
    attempt
FROM perdure_jobs
WHERE
    state = 'running'
    AND worker = :worker
