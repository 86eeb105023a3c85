-- history: the attempt that is kept in the job's own row, because it is running or succeeded.
-- Parameters: job_id.
-- Rows: one like those of history.sql, or none.
-- Concurrency: reads only, in one transaction with history.sql.
-- Indexes: the primary key.
SELECT
    id,
    attempt,
    state,
    CASE WHEN state = 'succeeded' THEN reason END,
    NULL,
    worker,
    started_at,
    attempt_ended_at,
    NULL
FROM perdure_jobs
WHERE
    id = :job_id
    AND state IN ('running', 'succeeded')
