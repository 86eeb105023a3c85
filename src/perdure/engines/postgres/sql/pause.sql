-- pause: stops fetching from a queue.
-- Parameters: queue, reason, now.
-- Rows: one (name) if that changed anything, else none.
-- Concurrency: a fetch that begins after it finds nothing in the queue.
-- Indexes: the primary key of queues.
INSERT INTO perdure.queues (name, paused_at, pause_reason)
VALUES (:queue::text, /*+ now */, :reason::text)
ON CONFLICT (name) DO NOTHING
RETURNING name
