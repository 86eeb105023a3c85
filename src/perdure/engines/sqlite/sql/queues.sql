-- queues: how many jobs each queue has, by state and lane.
-- Parameters: none.
-- Rows: (queue, state, lane, count, the earliest run_at).
-- Concurrency: reads only.
-- Indexes: none; every job is counted.
SELECT
    queue,
    state,
    lane,
    COUNT(*),
    MIN(run_at)
FROM perdure_jobs
GROUP BY queue, state, lane
