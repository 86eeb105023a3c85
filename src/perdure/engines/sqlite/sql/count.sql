-- count: how many jobs match.
-- Parameters: those of fragments/matches.sql, ids.
-- Rows: one (count).
-- Concurrency: reads only.
-- Indexes: by the fragment `among`: the primary key, or the partial index of the one state asked for.
SELECT COUNT(*)
FROM perdure_jobs /*+ through */
WHERE
    /*+ among */
    AND /*+ matches */
