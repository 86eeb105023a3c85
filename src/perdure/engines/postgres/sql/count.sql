-- count: how many jobs match.
-- Parameters: those of fragments/matches.sql.
-- Rows: one (count).
-- Concurrency: reads only.
-- Indexes: the primary key, or the partial index of the state asked for, as the planner finds cheaper.
SELECT COUNT(*)
FROM perdure.jobs
WHERE /*+ matches */
