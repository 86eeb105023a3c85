-- schema: notes that a migration was applied.
-- Parameters: version, now.
-- Rows: none.
-- Concurrency: runs in the transaction of the migration, under its lock.
-- Indexes: the primary key of schema.
INSERT INTO perdure.schema (version, applied_at)
VALUES (:version::integer, /*+ now */)
