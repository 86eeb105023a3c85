-- change: makes waiting or ready jobs due at another time, come before others, stand in another queue, try more or less, or
--     run with other arguments.
-- Parameters: ids, delay, run_at, priority, queue, args and delivery (null: as it is; of delay and run_at at most one is
--     given), has_limit (whether max_attempts is given), max_attempts, now.
-- Rows: (id, whether it was waiting or ready and is changed) of each job that exists.
-- Concurrency: a job that a worker has claimed is left as it is; one that is changed is claimed as it then is.
-- Indexes: the primary key.
WITH touched AS (
    UPDATE perdure.jobs
    SET
        state = CASE
            WHEN :run_at::bigint IS NULL AND :delay::bigint IS NULL THEN jobs.state
            WHEN COALESCE(:run_at::bigint, /*+ now */ + :delay::bigint) <= /*+ now */ THEN 'ready'
            ELSE 'waiting'
        END,
        run_at = COALESCE(:run_at::bigint, /*+ now */ + :delay::bigint, jobs.run_at),
        priority = COALESCE(:priority::integer, jobs.priority),
        queue = COALESCE(:queue::text, jobs.queue),
        origin = CASE WHEN :queue::text IS NULL OR :queue::text = jobs.queue THEN jobs.origin END,
        max_attempts = CASE WHEN :has_limit::boolean THEN :max_attempts::integer ELSE jobs.max_attempts END,
        args = COALESCE(:args::bytea, jobs.args),
        delivery = COALESCE(:delivery::text, jobs.delivery)
    WHERE
        jobs.id = ANY(:ids::text[]::uuid[])
-- [INV-23] Only what has not started is changed.
        AND jobs.state = ANY(ARRAY['waiting', 'ready'])
    RETURNING jobs.id
)

SELECT
    jobs.id::text,
    touched.id IS NOT NULL
FROM perdure.jobs
LEFT JOIN touched ON touched.id = jobs.id
WHERE jobs.id = ANY(:ids::text[]::uuid[])
