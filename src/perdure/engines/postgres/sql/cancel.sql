-- cancel: ends waiting and ready jobs, and marks running ones for their workers.
-- Parameters: ids, reason, now.
-- Rows: (id, the state that it was given or null when it had ended, the state that was found) of each job that exists.
-- Concurrency: a job that was answered `cancelled` is never claimed afterwards; rows are locked in the order of ids.
-- Indexes: the primary key.
WITH touched AS (
    UPDATE perdure.jobs
    SET
        reason = CASE WHEN jobs.is_cancelling THEN jobs.reason ELSE :reason::text END,
        is_cancelling = (jobs.state = 'running'),
        ended_at = CASE WHEN jobs.state <> 'running' THEN /*+ now */ END,
        state = CASE WHEN jobs.state = 'running' THEN 'running' ELSE 'cancelled' END
    WHERE
        jobs.id = ANY(:ids::text[]::uuid[])
        AND jobs.ended_at IS NULL
    RETURNING jobs.id, jobs.state
)

SELECT
    jobs.id::text,
    touched.state,
    jobs.state
FROM perdure.jobs
LEFT JOIN touched ON touched.id = jobs.id
WHERE jobs.id = ANY(:ids::text[]::uuid[])
