-- deregister: strikes a worker off at its own wish.
-- Parameters: worker.
-- Rows: none.
-- Concurrency: a repeated deregister changes nothing.
-- Indexes: the primary key of workers.
DELETE FROM perdure.workers
WHERE id = :worker::text
