-- cancelling: which of a worker's running jobs an operator wants cancelled.
-- Parameters: worker.
-- Rows: (id).
-- Concurrency: reads only.
-- Indexes: jobs_cancelling.
SELECT jobs.id::text
FROM perdure.jobs
WHERE
    jobs.is_cancelling
    AND jobs.worker = :worker::text
