-- fetch: whether the worker's lease holds.
-- Parameters: worker, now.
-- Rows: one (1) if it does, else none.
-- Concurrency: runs in the transaction of the claim.
-- Indexes: the primary key of perdure_workers.
SELECT 1
FROM perdure_workers
WHERE
    id = :worker
    AND lease_until > :now
