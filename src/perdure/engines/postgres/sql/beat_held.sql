-- beat: what the store believes a worker is running.
-- Parameters: worker.
-- Rows: one (a JSON array of [id, attempt], how many microseconds it took).
-- Concurrency: reads only. It is no part of beat.sql, so that a lease is renewed however long this takes.
-- Indexes: jobs_running; it reads the entries of jobs that ended as well, while an old snapshot is open.
SELECT
    (
        SELECT COALESCE(JSON_AGG(JSON_BUILD_ARRAY(jobs.id, jobs.attempt)), '[]')::text
        FROM perdure.jobs
        WHERE
            jobs.state = 'running'
            AND jobs.worker = :worker::text
    ),
    /*+ took */
