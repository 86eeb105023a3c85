-- replay, discard: the next matching dead jobs, oldest first.
-- Parameters: those of fragments/matches.sql, ids, above (the last id looked at), limit.
-- Rows: (id).
-- Concurrency: runs in the transaction of the verb; keyset paging past those that cannot be put back.
-- Indexes: perdure_jobs_dead or, when ids are given, the primary key.
SELECT id
FROM perdure_jobs
WHERE
    state = 'dead'
    AND /*+ among */
    AND id > :above
    AND /*+ matches */
ORDER BY id
LIMIT :limit
