-- audit: a page of attempts.
-- Parameters: job_id (null at first), attempt (the last of the page before), limit.
-- Rows: the attempts, as history.sql shows them.
-- Concurrency: reads only.
-- Indexes: the primary key of attempts.
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
WHERE (:job_id::text IS NULL OR (attempts.job_id, attempts.attempt) > (:job_id::text::uuid, :attempt::integer))
ORDER BY attempts.job_id, attempts.attempt
LIMIT :limit::bigint
