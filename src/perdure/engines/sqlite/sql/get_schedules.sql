-- get schedules: the schedules with some names.
-- Parameters: names (a JSON array).
-- Rows: the schedules, in no order.
-- Concurrency: reads only.
-- Indexes: the primary key of perdure_schedules, perdure_jobs_unfinished.
SELECT
    /*+ schedule_columns */
FROM perdure_schedules
WHERE name IN (SELECT value FROM JSON_EACH(:names))
