-- list: a page of matching jobs, newest first by id.
-- Parameters: those of fragments/matches.sql, below (the last id of the page before, null at first), limit.
-- Rows: the jobs.
-- Concurrency: reads only; keyset paging, so that jobs made meanwhile shift nothing.
-- Indexes: the primary key, or the partial index of the state asked for, as the planner finds cheaper.
SELECT
    /*+ job_columns */
FROM perdure.jobs
WHERE
    (:below::text IS NULL OR jobs.id < :below::text::uuid)
    AND /*+ matches */
ORDER BY jobs.id DESC
LIMIT :limit::bigint
