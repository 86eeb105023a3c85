-- configure: forgets a queue about which nothing is set any more.
-- Parameters: queue.
-- Rows: none.
-- Concurrency: runs in the transaction that may have taken the last value back.
-- Indexes: the primary key of perdure_queue_settings.
DELETE FROM perdure_queue_settings
WHERE
    name = :queue
    AND retry_share IS NULL
    AND is_strict IS NULL
    AND max_retries_running IS NULL
    AND concurrency IS NULL
