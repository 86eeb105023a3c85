-- audit: a page of jobs.
-- Parameters: after (the last rowid of the page before, 0 at first), limit.
-- Rows: the jobs, each with its rowid at the end.
-- Concurrency: reads only.
-- Indexes: none; rows by rowid.
SELECT
    /*+ job_columns */,
    rowid
FROM perdure_jobs
WHERE rowid > :after
ORDER BY rowid
LIMIT :limit
