-- fetch, reap: takes a job from a worker that cannot be read, so that it is not handed out again.
-- Parameters: id, worker (null: whoever holds it), now.
-- Rows: none.
-- Concurrency: runs in the transaction that found it; the attempt is not counted, and what cannot be read stays as it is.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    state = 'dead',
    reason = 'damaged',
    fingerprint = 'damaged',
    attempt = MAX(0, attempt - 1),
    worker = NULL,
    is_cancelling = 0,
    ended_at = :now
WHERE
    id = :id
    AND state = 'running'
    AND (:worker IS NULL OR worker = :worker)
