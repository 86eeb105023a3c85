-- promote: when the next waiting job is due.
-- Parameters: none.
-- Rows: one (run_at), null when no job waits.
-- Concurrency: runs in the transaction of the promote.
-- Indexes: perdure_jobs_waiting.
SELECT MIN(run_at)
FROM perdure_jobs
WHERE state = 'waiting'
