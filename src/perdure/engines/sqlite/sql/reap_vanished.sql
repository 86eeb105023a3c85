-- reap: the workers that hold running jobs and are not among the living, in one value.
-- Parameters: none.
-- Rows: one (a JSON array of names).
-- Concurrency: reads only.
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
)

SELECT JSON_GROUP_ARRAY(holder.name)
FROM holder
WHERE
    holder.name IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM perdure_workers AS living
        WHERE living.id = holder.name
    )
