-- prune: deletes the history of a job that was pruned.
-- Parameters: job_id.
-- Rows: none.
-- Concurrency: runs in the transaction of the prune.
-- Indexes: the primary key of perdure_attempts.
DELETE FROM perdure_attempts
WHERE job_id = ?
