-- history: the attempts of a job that did not succeed, newest first.
-- Parameters: job_id, limit.
-- Rows: (job_id, attempt, outcome, reason, error, worker, started_at, ended_at, delay).
-- Concurrency: reads only, in one transaction with history_last.sql.
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
WHERE job_id = :job_id
ORDER BY attempt DESC
LIMIT :limit
