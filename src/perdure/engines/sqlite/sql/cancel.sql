-- cancel: ends a waiting or ready job, and marks a running one for its worker.
-- Parameters: id, reason, now.
-- Rows: one (state) as it is now, none when the job has ended or does not exist.
-- Concurrency: runs under the write lock; a job that was answered `cancelled` is never claimed afterwards.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    reason = CASE WHEN is_cancelling = 1 THEN reason ELSE :reason END,
    is_cancelling = (state = 'running'),
    ended_at = CASE WHEN state <> 'running' THEN :now END,
    state = CASE WHEN state = 'running' THEN 'running' ELSE 'cancelled' END
WHERE
    id = :id
    AND ended_at IS NULL
RETURNING state
