-- retry: makes a waiting job ready now; what it has behind it stays counted.
-- Parameters: id, now.
-- Rows: none; the count of changed rows says whether it was waiting.
-- Concurrency: runs under the write lock.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    state = 'ready',
    run_at = :now
WHERE
    id = :id
    AND state = 'waiting'
