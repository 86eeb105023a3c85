-- audit: every forward of a dead job.
-- Parameters: none.
-- Rows: the forwards.
-- Concurrency: reads only.
-- Indexes: none; the table has a row for each dead job that was to be forwarded.
SELECT
    /*+ forward_columns */
FROM perdure.forwards
