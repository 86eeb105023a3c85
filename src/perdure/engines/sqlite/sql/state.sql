-- cancel, retry: the state of a job.
-- Parameters: id.
-- Rows: one (state) if the job exists, else none.
-- Concurrency: runs in the transaction of the verb.
-- Indexes: the primary key.
SELECT state
FROM perdure_jobs
WHERE id = :id
