-- forward counts: how many forwards there are in each state.
-- Parameters: none.
-- Rows: (state, how many) of each state that has any.
-- Concurrency: reads only.
-- Indexes: perdure_forwards_state.
SELECT
    state,
    COUNT(*)
FROM perdure_forwards
GROUP BY state
