-- list: how many jobs are in a state, counted no further than to the limit.
-- Parameters: limit.
-- Rows: one (count).
-- Concurrency: reads only.
-- Indexes: the partial index of the state.
SELECT COUNT(*)
FROM (
    SELECT 1
    FROM perdure_jobs /*+ through */
    WHERE /*+ among */
    LIMIT :limit
)
