-- schedules: a page of schedules by name, descending.
-- Parameters: below (the last name of the page before, null at first), limit.
-- Rows: the schedules.
-- Concurrency: reads only; keyset paging, so that schedules made meanwhile shift nothing.
-- Indexes: the primary key of schedules, jobs_unfinished.
SELECT
    /*+ schedule_columns */
FROM perdure.schedules
WHERE (:below::text IS NULL OR schedules.name < :below::text)
ORDER BY schedules.name DESC
LIMIT :limit::bigint
