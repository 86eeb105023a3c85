-- schedules: a page of schedules by name, descending.
-- Parameters: below (the last name of the page before, null at first), limit.
-- Rows: the schedules.
-- Concurrency: reads only; keyset paging, so that schedules made meanwhile shift nothing.
-- Indexes: the primary key of perdure_schedules, perdure_jobs_unfinished.
SELECT
    /*+ schedule_columns */
FROM perdure_schedules
WHERE name < COALESCE(:below, CHAR(1114111))
ORDER BY name DESC
LIMIT :limit
