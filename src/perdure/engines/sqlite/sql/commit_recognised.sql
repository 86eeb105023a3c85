-- commit: whether an attempt that was not accepted had made its job succeed before, in its handler's transaction.
-- Parameters: id, attempt.
-- Rows: one (1 or 0).
-- Concurrency: runs in the transaction of the commit.
-- Indexes: the primary key.
SELECT EXISTS (
    SELECT 1
    FROM perdure_jobs
    WHERE
        id = :id
        AND attempt = :attempt
        AND state = 'succeeded'
)
