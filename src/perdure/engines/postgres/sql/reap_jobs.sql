-- reap: running jobs that have no living worker.
-- Parameters: limit.
-- Rows: the jobs, in no order.
-- Concurrency: reads only; the commit of what is decided about each is fenced.
-- Indexes: jobs_running, the primary key of workers.
SELECT
    /*+ job_columns */
FROM perdure.jobs
WHERE
    jobs.state = 'running'
    AND NOT EXISTS (
        SELECT 1
        FROM perdure.workers
        WHERE workers.id = jobs.worker
    )
LIMIT :limit::bigint
