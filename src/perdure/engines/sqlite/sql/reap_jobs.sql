-- reap: running jobs of vanished workers.
-- Parameters: workers (a JSON array of names), limit.
-- Rows: the jobs, in no order.
-- Concurrency: reads only; the commit of what is decided about each is fenced.
-- Indexes: perdure_jobs_running.
SELECT
    /*+ job_columns */
FROM perdure_jobs INDEXED BY perdure_jobs_running
WHERE
    state = 'running'
    AND worker IN (SELECT value FROM JSON_EACH(:workers))
LIMIT :limit
