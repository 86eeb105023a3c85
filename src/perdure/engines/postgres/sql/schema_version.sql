-- schema: the version that the store has.
-- Parameters: none.
-- Rows: one (version), null when none was applied.
-- Concurrency: reads only.
-- Indexes: the primary key of schema.
SELECT MAX(schema.version)
FROM perdure.schema
