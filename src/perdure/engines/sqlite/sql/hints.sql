-- wakeups: what a worker could have to do, looked at after another process committed.
-- Parameters: none.
-- Rows: one (whether anything is ready, when the next job is due, the newest of the jobs being cancelled).
-- Concurrency: reads only.
-- Indexes: perdure_jobs_ready, perdure_jobs_waiting, perdure_jobs_cancelling.
SELECT
    EXISTS (
        SELECT 1
        FROM perdure_jobs
        WHERE state = 'ready'
    ),
    (
        SELECT MIN(run_at)
        FROM perdure_jobs
        WHERE state = 'waiting'
    ),
    (
        SELECT MAX(rowid)
        FROM perdure_jobs
        WHERE is_cancelling = 1
    )
