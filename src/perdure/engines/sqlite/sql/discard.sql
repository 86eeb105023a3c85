-- discard: dismisses a dead job; it ends cancelled and is pruned like one.
-- Parameters: id, now.
-- Rows: none; the count of changed rows says whether it was dead.
-- Concurrency: runs under the write lock.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    state = 'cancelled',
    reason = 'discarded',
    ended_at = :now
WHERE
    id = :id
    AND state = 'dead'
