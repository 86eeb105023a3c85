-- forwards: the forwards of a list of jobs.
-- Parameters: ids.
-- Rows: those that exist, in no order.
-- Concurrency: reads only.
-- Indexes: the primary key.
SELECT
    /*+ forward_columns */
FROM perdure.forwards
WHERE forwards.job_id = ANY(:ids::text[]::uuid[])
