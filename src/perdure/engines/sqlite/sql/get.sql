-- get: the jobs of a list of ids.
-- Parameters: ids, a JSON array of texts.
-- Rows: those that exist, in no order.
-- Concurrency: reads only.
-- Indexes: the primary key.
SELECT
    /*+ job_columns */
FROM perdure_jobs
WHERE id IN (SELECT value FROM JSON_EACH(:ids))
