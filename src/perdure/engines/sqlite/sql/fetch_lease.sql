-- fetch: whether the worker is registered: its lease holds until it is struck off.
-- Parameters: worker.
-- Rows: one (1 or 0).
-- Concurrency: runs in the transaction of the claim.
-- Indexes: the primary key of perdure_workers.
SELECT EXISTS (
    SELECT 1
    FROM perdure_workers
    WHERE id = :worker
)
