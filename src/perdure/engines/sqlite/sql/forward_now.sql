-- forward now: makes the forward of a dead job due now, and makes one where there is none.
-- Parameters: id, now.
-- Rows: none; the count of changed rows says whether one is due now. It is not when the job is forwarded or not dead.
-- Concurrency: runs under the write lock.
-- Indexes: the primary keys.
INSERT INTO perdure_forwards (
    job_id,
    attempt,
    queue,
    state,
    next_at
)
SELECT
    id,
    attempt,
    COALESCE(origin, queue),
    'pending',
    :now
FROM perdure_jobs
WHERE
    id = :id
    AND state = 'dead'
ON CONFLICT (job_id) DO UPDATE
SET
    next_at = :now,
    state = CASE WHEN state = 'stopped' THEN 'failing' ELSE state END
WHERE state <> 'forwarded'
