-- resume: lets a queue be fetched from again, and clears away a pause that has ended by itself.
-- Parameters: queue.
-- Rows: one (paused_until) if there was a pause, ended or not, else none.
-- Concurrency: a repeated resume changes nothing.
-- Indexes: the primary key of perdure_queues.
DELETE FROM perdure_queues
WHERE name = :queue
RETURNING paused_until
