-- configure: sets what an operator says about a queue, of the values that are named.
-- Parameters: queue; retry_share, is_strict, max_retries_running, concurrency (null: nothing said, -1: explicitly no limit);
--     sets_retry_share, sets_is_strict, sets_max_retries_running, sets_concurrency (whether it is named).
-- Rows: one (retry_share, is_strict, max_retries_running, concurrency), as they are now.
-- Concurrency: two at once about different values both hold.
-- Indexes: the primary key of perdure_queue_settings.
INSERT INTO perdure_queue_settings (name, retry_share, is_strict, max_retries_running, concurrency)
VALUES (
    :queue,
    CASE WHEN :sets_retry_share THEN :retry_share END,
    CASE WHEN :sets_is_strict THEN :is_strict END,
    CASE WHEN :sets_max_retries_running THEN :max_retries_running END,
    CASE WHEN :sets_concurrency THEN :concurrency END
)
ON CONFLICT (name) DO UPDATE
SET
    retry_share = CASE WHEN :sets_retry_share THEN :retry_share ELSE retry_share END,
    is_strict = CASE WHEN :sets_is_strict THEN :is_strict ELSE is_strict END,
    max_retries_running = CASE
        WHEN :sets_max_retries_running THEN :max_retries_running
        ELSE max_retries_running
    END,
    concurrency = CASE WHEN :sets_concurrency THEN :concurrency ELSE concurrency END
RETURNING retry_share, is_strict, max_retries_running, concurrency
