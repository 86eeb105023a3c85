-- recent: the succeeded and cancelled jobs that were the last to end.
-- Parameters: limit.
-- Rows: (task, queue, state, lane, attempt, failures, run_at, reason, delay, started_at, ended_at).
-- Concurrency: reads only.
-- Indexes: jobs_ended, read from one end until the limit.
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
WHERE jobs.state = ANY(ARRAY['succeeded', 'cancelled'])
ORDER BY jobs.ended_at DESC
LIMIT :limit::integer
