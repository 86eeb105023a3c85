-- cancelling: which of a worker's running jobs an operator wants cancelled.
-- Parameters: worker.
-- Rows: (id).
-- Concurrency: reads only.
-- Indexes: perdure_jobs_cancelling.
SELECT id
FROM perdure_jobs
WHERE
    is_cancelling = 1
    AND worker = :worker
