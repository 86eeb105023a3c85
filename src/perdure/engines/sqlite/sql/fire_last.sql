-- fire: removes a schedule with its last step, if it has the revision that the step is based on.
-- Parameters: name, replaces, needs_idle.
-- Rows: none; the count of changed rows says whether the step was taken.
-- Concurrency: see fire.sql.
-- Indexes: the primary key of perdure_schedules, perdure_jobs_unfinished.
DELETE FROM perdure_schedules
WHERE
    name = :name
    AND revision = :replaces
    AND (
        :needs_idle = 0
        OR NOT EXISTS (
            SELECT 1
            FROM perdure_jobs INDEXED BY perdure_jobs_unfinished
            WHERE
                perdure_jobs.schedule = :name
                AND perdure_jobs.ended_at IS NULL
        )
    )
