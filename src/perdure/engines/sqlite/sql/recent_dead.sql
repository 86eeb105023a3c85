-- recent: the newest dead jobs.
-- Parameters: limit.
-- Rows: (task, queue, state, lane, attempt, failures, run_at, reason, delay, started_at, ended_at).
-- Concurrency: reads only.
-- Indexes: perdure_jobs_dead, read from one end until the limit.
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
FROM perdure_jobs INDEXED BY perdure_jobs_dead
WHERE state = 'dead'
ORDER BY id DESC
LIMIT :limit
