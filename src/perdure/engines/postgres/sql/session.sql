-- connections: has the session keep plans that stay good however the tables grow, if it is this client's own.
-- Parameters: pid (of the server's process, as the client was told it).
-- Rows: one (whether it is: behind a pooler another process answers than the one that the client was told of).
-- Concurrency: settings of this session alone. The statements that run in it have one good plan each: along an index,
--     in its order. Without the others, a plan that was made for an empty table is right for a large one.
-- Indexes: none.
SELECT
    CASE
        WHEN PG_BACKEND_PID() = :pid::integer THEN SET_CONFIG('plan_cache_mode', 'force_generic_plan', FALSE)
            || SET_CONFIG('enable_seqscan', 'off', FALSE)
            || SET_CONFIG('enable_bitmapscan', 'off', FALSE)
            || SET_CONFIG('enable_sort', 'off', FALSE)
            || SET_CONFIG('enable_nestloop', 'off', FALSE)
            || SET_CONFIG('jit', 'off', FALSE)
    END IS NOT NULL
