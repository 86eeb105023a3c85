-- now: the store's time.
-- Parameters: now.
-- Rows: one (microseconds).
-- Concurrency: reads only.
-- Indexes: none.
SELECT /*+ now */
