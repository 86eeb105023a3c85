-- Version 2: pauses that end by themselves, and what operators set about a queue.
-- In the settings null stands for nothing set, -1 for explicitly no limit.
-- Only the small table of queues is locked, and for a moment: jobs go on being enqueued, fetched and committed.

CREATE TABLE perdure.queue_settings (
    name text COLLATE "C" PRIMARY KEY,
    retry_share double precision CHECK (retry_share BETWEEN 0 AND 1),
    max_retries_running integer CHECK (max_retries_running = -1 OR max_retries_running >= 1),
    concurrency integer CHECK (concurrency = -1 OR concurrency >= 1),
    is_strict boolean
);

ALTER TABLE perdure.queues ADD COLUMN paused_until bigint;
