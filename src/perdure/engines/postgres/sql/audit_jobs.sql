-- audit: a page of jobs.
-- Parameters: after (the last id of the page before, null at first), limit.
-- Rows: the jobs.
-- Concurrency: reads only.
-- Indexes: the primary key.
SELECT
    /*+ job_columns */
FROM perdure.jobs
WHERE (:after::text IS NULL OR jobs.id > :after::text::uuid)
ORDER BY jobs.id
LIMIT :limit::bigint
