-- commit: empties the batch.
-- Parameters: none.
-- Rows: none.
-- Concurrency: see commit_table.sql.
-- Indexes: none.
DELETE FROM temp.perdure_ended
