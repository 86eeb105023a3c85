-- queues: the pauses that have not ended.
-- Parameters: now.
-- Rows: (name, paused_at, paused_until, pause_reason).
-- Concurrency: reads only.
-- Indexes: none; the table has a row for each paused queue only.
SELECT
    queues.name,
    queues.paused_at,
    queues.paused_until,
    queues.pause_reason
FROM perdure.queues
WHERE
    queues.paused_until IS NULL
    OR queues.paused_until > /*+ now */
