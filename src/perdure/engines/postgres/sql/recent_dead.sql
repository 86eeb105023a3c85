-- recent: the newest dead jobs.
-- Parameters: limit.
-- Rows: (task, queue, state, lane, attempt, failures, run_at, reason, delay, started_at, ended_at).
-- Concurrency: reads only.
-- Indexes: jobs_dead, read from one end until the limit.
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
WHERE jobs.state = 'dead'
ORDER BY jobs.id DESC
LIMIT :limit::integer
