-- settings, queues: what operators have set.
-- Parameters: none.
-- Rows: (name, retry_share, is_strict, max_retries_running, concurrency).
-- Concurrency: reads only.
-- Indexes: none; the table has a row only for queues about which something was set. A row of nulls stays when all is
--     taken back: to delete it could lose what is being set at the same time.
SELECT
    settings.name,
    settings.retry_share,
    settings.is_strict,
    settings.max_retries_running,
    settings.concurrency
FROM perdure.queue_settings AS settings
