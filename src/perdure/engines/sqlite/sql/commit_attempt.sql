-- commit: records a running attempt that did not succeed.
-- Parameters: outcome, reason, error, started_at, ended_at, delay; the fence job_id, attempt, worker.
-- Rows: none; the count of changed rows says whether the fence matched.
-- Concurrency: fenced by (id, attempt, worker); runs just before commit.sql, in its transaction.
-- Indexes: the primary key.
INSERT INTO perdure_attempts (
    job_id,
    attempt,
    outcome,
    reason,
    error,
    worker,
    started_at,
    ended_at,
    delay
)
SELECT
    id,
    attempt,
    :outcome,
    :reason,
    :error,
    worker,
    :started_at,
    :ended_at,
    CASE WHEN is_cancelling = 0 THEN :delay END
FROM perdure_jobs
WHERE
    id = :id
    AND attempt = :attempt
    AND worker = :worker
    AND state = 'running'
