-- schedules: a page of schedules by name.
-- Parameters: above (the last name of the page before), limit.
-- Rows: the schedules.
-- Concurrency: reads only; keyset paging, so that schedules made meanwhile shift nothing.
-- Indexes: the primary key of schedules, jobs_unfinished.
SELECT
    /*+ schedule_columns */
FROM perdure.schedules
WHERE schedules.name > :above::text
ORDER BY schedules.name
LIMIT :limit::bigint
