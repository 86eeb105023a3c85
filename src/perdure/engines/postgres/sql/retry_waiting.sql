-- retry: makes waiting jobs ready now; what they have behind them stays counted.
-- Parameters: ids, now.
-- Rows: (id) of each job that was waiting.
-- Concurrency: runs in the transaction of retry.sql, which holds the rows.
-- Indexes: the primary key.
UPDATE perdure.jobs
SET
    state = 'ready',
    run_at = /*+ now */
WHERE
    id = ANY(:ids::text[]::uuid[])
    AND state = 'waiting'
RETURNING id::text
