-- history: the attempts of a job, newest first: those that did not succeed, and the one that is kept in the job's own
--     row because it is running or succeeded.
-- Parameters: job_id, limit.
-- Rows: (job_id, attempt, outcome, reason, error, worker, started_at, ended_at, delay).
-- Concurrency: reads only; one picture.
-- Indexes: the primary keys.
SELECT
    attempts.job_id::text,
    attempts.attempt,
    attempts.outcome,
    attempts.reason,
    attempts.error,
    attempts.worker,
    attempts.started_at,
    attempts.ended_at,
    attempts.delay
FROM perdure.attempts
WHERE attempts.job_id = :job_id::text::uuid
UNION ALL
SELECT
    jobs.id::text,
    jobs.attempt,
    jobs.state,
    CASE WHEN jobs.state = 'succeeded' THEN jobs.reason END,
    NULL,
    jobs.worker,
    jobs.started_at,
    jobs.attempt_ended_at,
    NULL
FROM perdure.jobs
WHERE
    jobs.id = :job_id::text::uuid
    AND jobs.state = ANY(ARRAY['running', 'succeeded'])
ORDER BY 2 DESC
LIMIT :limit::bigint
