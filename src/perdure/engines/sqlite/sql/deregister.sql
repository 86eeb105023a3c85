-- deregister: strikes a worker off at its own wish.
-- Parameters: worker.
-- Rows: none.
-- Concurrency: a repeated deregister changes nothing.
-- Indexes: the primary key of perdure_workers.
DELETE FROM perdure_workers
WHERE id = :worker
