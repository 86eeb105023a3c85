-- pause: stops fetching from a queue.
-- Parameters: queue, reason, now.
-- Rows: none; the count of changed rows says whether that changed anything.
-- Concurrency: a fetch after it finds nothing in the queue.
-- Indexes: the primary key of perdure_queues.
INSERT INTO perdure_queues (name, paused_at, pause_reason)
VALUES (:queue, :now, :reason)
ON CONFLICT (name) DO NOTHING
