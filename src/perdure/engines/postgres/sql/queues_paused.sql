-- queues: the switches.
-- Parameters: none.
-- Rows: (name, paused_at, pause_reason).
-- Concurrency: reads only.
-- Indexes: none; the table has a row for each paused queue only.
SELECT
    queues.name,
    queues.paused_at,
    queues.pause_reason
FROM perdure.queues
