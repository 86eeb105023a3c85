-- recent: the succeeded and cancelled jobs that were the last to end.
-- Parameters: limit.
-- Rows: (task, queue, state, lane, attempt, failures, run_at, reason, delay, started_at, ended_at).
-- Concurrency: reads only.
-- Indexes: perdure_jobs_ended, read from one end until the limit.
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
FROM perdure_jobs INDEXED BY perdure_jobs_ended
WHERE
    state = 'succeeded'
    OR state = 'cancelled'
ORDER BY ended_at DESC
LIMIT :limit
