-- replay: the next matching dead jobs, oldest first.
-- Parameters: those of fragments/matches.sql, above (the last id looked at, null at first), limit.
-- Rows: (id).
-- Concurrency: runs in the transaction of the verb and holds the rows; keyset paging past those that cannot be put back.
-- Indexes: jobs_dead or, when ids are given, the primary key.
SELECT jobs.id::text
FROM perdure.jobs
WHERE
    jobs.state = 'dead'
    AND (:above::text IS NULL OR jobs.id > :above::text::uuid)
    AND /*+ matches */
ORDER BY jobs.id
LIMIT :limit::bigint
FOR UPDATE
