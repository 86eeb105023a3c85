-- Version 2: pauses that end by themselves, and what operators set about a queue.
-- In the settings null stands for nothing set, -1 for explicitly no limit.

ALTER TABLE perdure_queues ADD COLUMN paused_until INTEGER;

CREATE TABLE perdure_queue_settings (
    name TEXT NOT NULL PRIMARY KEY,
    retry_share REAL CHECK (retry_share BETWEEN 0 AND 1),
    is_strict INTEGER CHECK (is_strict = 0 OR is_strict = 1),
    max_retries_running INTEGER CHECK (max_retries_running = -1 OR max_retries_running >= 1),
    concurrency INTEGER CHECK (concurrency = -1 OR concurrency >= 1)
) WITHOUT ROWID;
