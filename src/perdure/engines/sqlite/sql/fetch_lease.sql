-- fetch: whether the worker's lease holds.
-- Parameters: worker, now.
-- Rows: one (1 or 0).
-- Concurrency: runs in the transaction of the claim.
-- Indexes: the primary key of perdure_workers.
SELECT EXISTS (
    SELECT 1
    FROM perdure_workers
    WHERE
        id = :worker
        AND lease_until > :now
)
