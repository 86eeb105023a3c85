-- beat: renews a worker's lease, unless the worker was struck off, and tells what the store believes it is running.
-- Parameters: worker, lease, now.
-- Rows: one (whether the lease was renewed, a JSON array of [id, attempt]).
-- Concurrency: a worker that was struck off cannot come back to life.
-- Indexes: the primary key of workers, jobs_running.
WITH renewed AS (
    UPDATE perdure.workers
    SET
        beat_at = /*+ now */,
        lease_until = /*+ now */ + :lease::bigint
    WHERE workers.id = :worker::text
    RETURNING workers.id
)

SELECT
    EXISTS (SELECT 1 FROM renewed),
    (
        SELECT COALESCE(JSON_AGG(JSON_BUILD_ARRAY(jobs.id, jobs.attempt)), '[]')::text
        FROM perdure.jobs
        WHERE
            jobs.state = 'running'
            AND jobs.worker = :worker::text
    )
