-- resume: lets a queue be fetched from again, and clears away a pause that has ended by itself.
-- Parameters: queue, now.
-- Rows: one (true when it was paused until now, false when its pause had ended) if there was a pause, else none.
-- Concurrency: a repeated resume changes nothing.
-- Indexes: the primary key of queues.
DELETE FROM perdure.queues
WHERE name = :queue::text
RETURNING paused_until IS NULL OR paused_until > /*+ now */
