-- wakeups: what a worker could have to do, looked at after another process committed.
-- Parameters: none.
-- Rows: one (whether anything is ready, when the next job is due, which jobs are being cancelled, when the next
--     schedule is due).
-- Concurrency: reads only.
-- Indexes: perdure_jobs_ready, perdure_jobs_waiting, perdure_jobs_cancelling, perdure_schedules_next.
SELECT
    EXISTS (
        SELECT 1
        FROM perdure_jobs INDEXED BY perdure_jobs_ready
        WHERE state = 'ready'
    ),
    (
        SELECT MIN(run_at)
        FROM perdure_jobs INDEXED BY perdure_jobs_waiting
        WHERE state = 'waiting'
    ),
    (
        SELECT JSON_GROUP_ARRAY(id)
        FROM perdure_jobs INDEXED BY perdure_jobs_cancelling
        WHERE is_cancelling = 1
    ),
    (
        SELECT MIN(next_at)
        FROM perdure_schedules INDEXED BY perdure_schedules_next
        WHERE next_at IS NOT NULL
    )
