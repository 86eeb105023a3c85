-- settings, queues: what operators have set.
-- Parameters: none.
-- Rows: (name, retry_share, is_strict, max_retries_running, concurrency).
-- Concurrency: reads only.
-- Indexes: none; the table has a row only for queues about which something is set.
SELECT
    name,
    retry_share,
    is_strict,
    max_retries_running,
    concurrency
FROM perdure_queue_settings
