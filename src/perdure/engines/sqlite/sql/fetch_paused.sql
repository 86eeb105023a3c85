-- fetch: the paused queues.
-- Parameters: none.
-- Rows: (name).
-- Concurrency: runs in the transaction of the claim, so that nothing is claimed after a pause was answered.
-- Indexes: none; the table has a row for each paused queue only.
SELECT name
FROM perdure_queues
