-- queues: the pauses that have not ended.
-- Parameters: now.
-- Rows: (name, paused_at, paused_until, pause_reason).
-- Concurrency: reads only.
-- Indexes: none; the table has a row for each paused queue only.
SELECT
    name,
    paused_at,
    paused_until,
    pause_reason
FROM perdure_queues
WHERE
    paused_until IS NULL
    OR paused_until > :now
