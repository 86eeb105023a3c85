-- checkpoint: changes nothing, and is written nevertheless: whoever writes first after a checkpoint begins the log anew.
-- Parameters: none.
-- Rows: none.
-- Concurrency: run by the one that has the lock for checkpoints, before it gives that back.
-- Indexes: none; the table has a row for each version of the schema.
UPDATE perdure_schema
SET applied_at = applied_at
