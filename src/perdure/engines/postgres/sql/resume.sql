-- resume: lets a queue be fetched from again.
-- Parameters: queue.
-- Rows: one (name) if that changed anything, else none.
-- Concurrency: a repeated resume changes nothing.
-- Indexes: the primary key of queues.
DELETE FROM perdure.queues
WHERE name = :queue::text
RETURNING name
