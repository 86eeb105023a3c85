-- queues: how many jobs each queue has, by state and lane.
-- Parameters: none.
-- Rows: (queue, state, lane, count, the earliest run_at of ready jobs); several rows for one queue and state.
-- Concurrency: reads only.
-- Indexes: each state's own; those that can hold many jobs cover what is counted.
SELECT
    queue,
    'waiting',
    lane,
    COUNT(*),
    NULL
FROM perdure_jobs INDEXED BY perdure_jobs_waiting
WHERE state = 'waiting'
GROUP BY queue, lane
UNION ALL
SELECT
    queue,
    'ready',
    lane,
    COUNT(*),
    MIN(run_at)
FROM perdure_jobs INDEXED BY perdure_jobs_ready
WHERE state = 'ready'
GROUP BY queue, lane
UNION ALL
SELECT
    queue,
    'running',
    NULL,
    COUNT(*),
    NULL
FROM perdure_jobs INDEXED BY perdure_jobs_running
WHERE state = 'running'
GROUP BY queue
UNION ALL
SELECT
    queue,
    'dead',
    NULL,
    COUNT(*),
    NULL
FROM perdure_jobs INDEXED BY perdure_jobs_dead
WHERE state = 'dead'
GROUP BY queue
UNION ALL
SELECT
    queue,
    state,
    NULL,
    COUNT(*),
    NULL
FROM perdure_jobs INDEXED BY perdure_jobs_ended
WHERE
    state = 'succeeded'
    OR state = 'cancelled'
GROUP BY queue, state
