-- list: a page of matching jobs, newest first by id.
-- Parameters: those of fragments/matches.sql, ids, below (the last id of the page before), limit.
-- Rows: the jobs.
-- Concurrency: reads only; keyset paging, so that jobs made meanwhile shift nothing.
-- Indexes: by the fragment `among`: the primary key, or the partial index of the one state asked for.
SELECT
    /*+ job_columns */
FROM perdure_jobs /*+ through */
WHERE
    /*+ among */
    AND id < :below
    AND /*+ matches */
ORDER BY id DESC
LIMIT :limit
