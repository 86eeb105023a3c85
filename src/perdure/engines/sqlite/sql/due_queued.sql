-- due: the schedules with a backlog and no unfinished job, but those whose tick has come.
-- Parameters: now, limit.
-- Rows: the schedules.
-- Concurrency: reads only; what follows is fenced by the revision.
-- Indexes: perdure_schedules_queued, perdure_jobs_unfinished.
SELECT
    /*+ schedule_columns */
FROM perdure_schedules
WHERE
    is_queued = 1
    AND (next_at IS NULL OR next_at > :now)
    AND NOT EXISTS (
        SELECT 1
        FROM perdure_jobs INDEXED BY perdure_jobs_unfinished
        WHERE
            perdure_jobs.schedule = perdure_schedules.name
            AND perdure_jobs.ended_at IS NULL
    )
ORDER BY name
LIMIT :limit
