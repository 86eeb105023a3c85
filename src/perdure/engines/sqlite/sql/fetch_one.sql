-- fetch: one job that was claimed, where fetch_claimed.sql cannot show all of them together: a value is no text.
-- Parameters: rowid.
-- Rows: one, the job.
-- Concurrency: runs in the transaction of the claim.
-- Indexes: none; the row by rowid.
SELECT
    /*+ job_columns */
FROM perdure_jobs
WHERE rowid = :rowid
