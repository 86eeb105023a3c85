-- fetch, reap: takes jobs from a worker that cannot be read, so that they are not handed out again.
-- Parameters: ids, worker (null: whoever holds them), now.
-- Rows: none.
-- Concurrency: fenced by the worker. The attempt is not counted, and what cannot be read stays as it is.
-- Indexes: the primary key.
UPDATE perdure.jobs
SET
    state = 'dead',
    reason = 'damaged',
    fingerprint = 'damaged',
    attempt = GREATEST(0, jobs.attempt - 1),
    worker = NULL,
    is_cancelling = FALSE,
    ended_at = /*+ now */
WHERE
    jobs.id = ANY(:ids::text[]::uuid[])
    AND jobs.state = 'running'
    AND (:worker::text IS NULL OR jobs.worker = :worker::text)
