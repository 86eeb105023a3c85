-- reap: running jobs whose worker is not among the living.
-- Parameters: limit.
-- Rows: the jobs, by worker.
-- Concurrency: reads only; the commit of what is decided about each is fenced.
-- Indexes: perdure_jobs_running, skipping from one worker to the next.
WITH RECURSIVE holder (name) AS (
    SELECT MIN(worker)
    FROM perdure_jobs
    WHERE state = 'running'
    UNION ALL
    SELECT (
        SELECT MIN(worker)
        FROM perdure_jobs
        WHERE
            state = 'running'
            AND worker > holder.name
    )
    FROM holder
    WHERE holder.name IS NOT NULL
),

vanished (name) AS (
    SELECT holder.name
    FROM holder
    WHERE
        holder.name IS NOT NULL
        AND NOT EXISTS (
            SELECT 1
            FROM perdure_workers AS living
            WHERE living.id = holder.name
        )
)

SELECT
    /*+ job_columns */
FROM vanished
CROSS JOIN perdure_jobs
WHERE
    perdure_jobs.state = 'running'
    AND perdure_jobs.worker = vanished.name
LIMIT :limit
