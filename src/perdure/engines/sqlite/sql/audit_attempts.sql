-- audit: a page of attempts.
-- Parameters: job_id, attempt (the last of the page before), limit.
-- Rows: the attempts, as history.sql shows them.
-- Concurrency: reads only.
-- Indexes: the primary key of perdure_attempts.
SELECT
    job_id,
    attempt,
    outcome,
    reason,
    error,
    worker,
    started_at,
    ended_at,
    delay
FROM perdure_attempts
WHERE (job_id, attempt) > (:job_id, :attempt)
ORDER BY job_id, attempt
LIMIT :limit
