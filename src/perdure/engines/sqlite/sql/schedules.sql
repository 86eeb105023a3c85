-- schedules: a page of schedules by name.
-- Parameters: above (the last name of the page before), limit.
-- Rows: the schedules.
-- Concurrency: reads only; keyset paging, so that schedules made meanwhile shift nothing.
-- Indexes: the primary key of perdure_schedules, perdure_jobs_unfinished.
SELECT
    /*+ schedule_columns */
FROM perdure_schedules
WHERE name > :above
ORDER BY name
LIMIT :limit
