-- reap: running jobs that have no living worker.
-- Parameters: limit.
-- Rows: the jobs, in no order.
-- Concurrency: reads only; the commit of what is decided about each is fenced.
-- Indexes: jobs_running, skipping from one worker to the next, so that the jobs of the living are not looked at; the
--     primary key of workers.
WITH RECURSIVE holder (name) AS (
    (
        SELECT jobs.worker
        FROM perdure.jobs
        WHERE jobs.state = 'running'
        ORDER BY jobs.worker
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT jobs.worker
        FROM perdure.jobs
        WHERE
            jobs.state = 'running'
            AND jobs.worker > holder.name
        ORDER BY jobs.worker
        LIMIT 1
    )
    FROM holder
    WHERE holder.name IS NOT NULL
),

vanished AS MATERIALIZED (
    SELECT holder.name
    FROM holder
    WHERE
        holder.name IS NOT NULL
        AND NOT EXISTS (
            SELECT 1
            FROM perdure.workers
            WHERE workers.id = holder.name
        )
)

SELECT
    /*+ job_columns */
FROM vanished
CROSS JOIN LATERAL (
    SELECT held.*
    FROM perdure.jobs AS held
    WHERE
        held.state = 'running'
        AND held.worker = vanished.name
    LIMIT :limit::bigint
) AS jobs
LIMIT :limit::bigint
