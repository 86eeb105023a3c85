-- forwards: the forwards of a list of jobs.
-- Parameters: ids, a JSON array of texts.
-- Rows: those that exist, in no order.
-- Concurrency: reads only.
-- Indexes: the primary key.
SELECT
    /*+ forward_columns */
FROM perdure_forwards
WHERE job_id IN (SELECT value FROM JSON_EACH(:ids))
