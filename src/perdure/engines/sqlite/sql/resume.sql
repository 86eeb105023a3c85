-- resume: lets a queue be fetched from again.
-- Parameters: queue.
-- Rows: none; the count of changed rows says whether that changed anything.
-- Concurrency: a repeated resume changes nothing.
-- Indexes: the primary key of perdure_queues.
DELETE FROM perdure_queues
WHERE name = :queue
