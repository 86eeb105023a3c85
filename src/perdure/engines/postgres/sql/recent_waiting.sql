-- recent: the waiting jobs that are due next.
-- Parameters: limit.
-- Rows: (task, queue, state, lane, attempt, failures, run_at, reason, delay, started_at, ended_at).
-- Concurrency: reads only.
-- Indexes: jobs_waiting, read from one end until the limit.
SELECT
    jobs.task,
    jobs.queue,
    jobs.state,
    jobs.lane,
    jobs.attempt,
    jobs.failures,
    jobs.run_at,
    jobs.reason,
    jobs.delay,
    jobs.started_at,
    jobs.ended_at
FROM perdure.jobs
WHERE jobs.state = 'waiting'
ORDER BY jobs.run_at
LIMIT :limit::integer
