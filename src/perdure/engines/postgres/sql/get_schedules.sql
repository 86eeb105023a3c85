-- get schedules: the schedules with some names.
-- Parameters: names.
-- Rows: the schedules, in no order.
-- Concurrency: reads only.
-- Indexes: the primary key of schedules, jobs_unfinished.
SELECT
    /*+ schedule_columns */
FROM perdure.schedules
WHERE schedules.name = ANY(:names::text[])
