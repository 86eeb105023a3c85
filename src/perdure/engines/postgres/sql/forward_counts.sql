-- forward counts: how many forwards there are in each state.
-- Parameters: none.
-- Rows: (state, how many) of each state that has any.
-- Concurrency: reads only.
-- Indexes: forwards_state.
SELECT
    forwards.state,
    COUNT(*)
FROM perdure.forwards
GROUP BY forwards.state
