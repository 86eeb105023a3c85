-- recent: the waiting jobs that are due next.
-- Parameters: limit.
-- Rows: (task, queue, state, lane, attempt, failures, run_at, reason, delay, started_at, ended_at).
-- Concurrency: reads only.
-- Indexes: perdure_jobs_waiting, read from one end until the limit.
SELECT
    task,
    queue,
    state,
    lane,
    attempt,
    failures,
    run_at,
    reason,
    delay,
    started_at,
    ended_at
FROM perdure_jobs INDEXED BY perdure_jobs_waiting
WHERE state = 'waiting'
ORDER BY run_at
LIMIT :limit
