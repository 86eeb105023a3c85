-- configure: sets what an operator says about a queue, of the values that are named.
-- Parameters: queue; retry_share, is_strict, max_retries_running, concurrency (null: nothing said, -1: explicitly no limit);
--     sets_retry_share, sets_is_strict, sets_max_retries_running, sets_concurrency (whether it is named).
-- Rows: one (retry_share, is_strict, max_retries_running, concurrency), as they are now.
-- Concurrency: two at once about different values both hold.
-- Indexes: the primary key of settings.
INSERT INTO perdure.queue_settings AS settings (name, retry_share, is_strict, max_retries_running, concurrency)
VALUES (
    :queue::text,
    CASE WHEN :sets_retry_share::boolean THEN :retry_share::double precision END,
    CASE WHEN :sets_is_strict::boolean THEN :is_strict::boolean END,
    CASE WHEN :sets_max_retries_running::boolean THEN :max_retries_running::integer END,
    CASE WHEN :sets_concurrency::boolean THEN :concurrency::integer END
)
ON CONFLICT (name) DO UPDATE
SET
    retry_share = CASE
        WHEN :sets_retry_share::boolean THEN :retry_share::double precision
        ELSE settings.retry_share
    END,
    is_strict = CASE WHEN :sets_is_strict::boolean THEN :is_strict::boolean ELSE settings.is_strict END,
    max_retries_running = CASE
        WHEN :sets_max_retries_running::boolean THEN :max_retries_running::integer
        ELSE settings.max_retries_running
    END,
    concurrency = CASE WHEN :sets_concurrency::boolean THEN :concurrency::integer ELSE settings.concurrency END
RETURNING settings.retry_share, settings.is_strict, settings.max_retries_running, settings.concurrency
