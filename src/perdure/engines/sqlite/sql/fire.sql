-- fire: changes a schedule by one step, if it has the revision that the step is based on.
-- Parameters: name, replaces, needs_idle, revision, next_at, is_queued, document.
-- Rows: none; the count of changed rows says whether the step was taken.
-- Concurrency: runs under the write lock, in the transaction that makes the jobs of the step; of any number of equal steps
--     the first is taken.
-- Indexes: the primary key of perdure_schedules, perdure_jobs_unfinished.
UPDATE perdure_schedules
SET
    revision = :revision,
    next_at = :next_at,
    is_queued = :is_queued,
    document = :document
-- [INV-21] A tick is one revision's to fire, and the revision changes with it.
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
