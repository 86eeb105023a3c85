-- queues: how many jobs each queue has, by state and lane.
-- Parameters: none.
-- Rows: (queue, state, lane, count, the earliest run_at).
-- Concurrency: reads only.
-- Indexes: none; every job is counted.
SELECT
    jobs.queue,
    jobs.state,
    jobs.lane,
    COUNT(*),
    MIN(jobs.run_at)
FROM perdure.jobs
GROUP BY jobs.queue, jobs.state, jobs.lane
