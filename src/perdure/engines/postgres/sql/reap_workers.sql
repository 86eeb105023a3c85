-- reap: strikes off workers whose lease has run out.
-- Parameters: now.
-- Rows: (id) of each worker struck off.
-- Concurrency: any worker may run it; a worker is struck off once, and not when a beat renewed its lease first.
-- Indexes: none; the table has one row per worker.
DELETE FROM perdure.workers
WHERE lease_until <= /*+ now */
RETURNING id
