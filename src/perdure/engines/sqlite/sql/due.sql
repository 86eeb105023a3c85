-- due: the schedules whose tick has come, the longest due first.
-- Parameters: now, limit.
-- Rows: the schedules.
-- Concurrency: reads only; what follows is fenced by the revision.
-- Indexes: perdure_schedules_next, perdure_jobs_unfinished.
SELECT
    /*+ schedule_columns */
FROM perdure_schedules
WHERE
    next_at IS NOT NULL
    AND next_at <= :now
ORDER BY next_at
LIMIT :limit
