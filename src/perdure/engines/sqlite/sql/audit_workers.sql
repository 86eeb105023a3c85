-- audit: the workers that are registered.
-- Parameters: none.
-- Rows: (id) of each.
-- Concurrency: reads only.
-- Indexes: none; the table has one row per worker.
SELECT id
FROM perdure_workers
