-- repair: makes the records of jobs agree with their states.
-- Parameters: ids, now.
-- Rows: (id) of each job that was repaired.
-- Concurrency: looks at the records once more, so that a job that has moved on is left as it is; waits for a statement that is
--     changing one of them. A job whose unique key another live job has stays as it is.
-- Indexes: the primary key; jobs_unique.
UPDATE perdure.jobs
SET
    state = CASE
        WHEN (jobs.state = 'running' AND jobs.worker IS NULL) OR (jobs.state = 'dead' AND jobs.reason = 'damaged')
            THEN 'ready'
        ELSE jobs.state
    END,
    worker = CASE WHEN jobs.state = 'running' THEN jobs.worker END,
    is_cancelling = jobs.is_cancelling AND jobs.state = 'running' AND jobs.worker IS NOT NULL,
    ended_at = CASE
        WHEN jobs.state = ANY(ARRAY['waiting', 'ready', 'running']) THEN NULL
        WHEN jobs.state = 'dead' AND jobs.reason = 'damaged' THEN NULL
        ELSE COALESCE(jobs.ended_at, /*+ now */)
    END,
    fingerprint = CASE
        WHEN jobs.state = 'dead' AND jobs.reason = 'damaged' THEN NULL
        WHEN jobs.state = 'dead' THEN COALESCE(jobs.fingerprint, 'unknown')
        ELSE jobs.fingerprint
    END,
    reason = CASE WHEN jobs.state = 'dead' AND jobs.reason = 'damaged' THEN NULL ELSE jobs.reason END
WHERE
    jobs.id = ANY(:ids::text[]::uuid[])
    AND (
        (jobs.state = 'running' AND jobs.worker IS NULL)
        OR (jobs.state = 'dead' AND jobs.reason = 'damaged')
        OR (jobs.state <> 'running' AND (jobs.worker IS NOT NULL OR jobs.is_cancelling))
        OR (jobs.state = ANY(ARRAY['waiting', 'ready', 'running']) AND jobs.ended_at IS NOT NULL)
        OR (jobs.state = ANY(ARRAY['succeeded', 'dead', 'cancelled']) AND jobs.ended_at IS NULL)
    )
    AND NOT EXISTS (
        SELECT 1
        FROM perdure.jobs AS live
        WHERE
            live.task = jobs.task
            AND live.unique_key = jobs.unique_key
            AND live.ended_at IS NULL
            AND live.id <> jobs.id
    )
RETURNING jobs.id::text
