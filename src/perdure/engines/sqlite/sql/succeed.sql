-- commit: ends a running attempt, and its job, in success.
-- Parameters: now, started_at, attempt_ended_at, failures, recoveries, note, result; the fence id, attempt, worker.
-- Rows: none; the count of changed rows says whether the fence matched.
-- Concurrency: fenced by (id, attempt, worker); of two commits of an attempt the first is accepted.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    state = 'succeeded',
    ended_at = ?,
    started_at = ?,
    attempt_ended_at = ?,
    failures = ?,
    recoveries = ?,
    reason = ?,
    result = ?,
    error = NULL,
    delay = NULL,
    worker = NULL,
    is_cancelling = 0
WHERE
    id = ?
    AND attempt = ?
    AND worker = ?
    AND state = 'running'
