-- get: the jobs of a list of ids.
-- Parameters: ids.
-- Rows: those that exist, in no order.
-- Concurrency: reads only.
-- Indexes: the primary key.
SELECT
    /*+ job_columns */
FROM perdure.jobs
WHERE jobs.id = ANY(:ids::text[]::uuid[])
