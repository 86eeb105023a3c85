-- change: makes a waiting or ready job due at another time, come before others, stand in another queue, try more or less, or
--     run with other arguments.
-- Parameters: id, run_at, priority, queue, args and delivery (null: as it is), has_limit (whether max_attempts is given), max_attempts, now.
-- Rows: none; the count of changed rows says whether it was waiting or ready.
-- Concurrency: runs under the write lock; a job that a worker has claimed is left as it is.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    state = CASE WHEN :run_at IS NULL THEN state WHEN :run_at <= :now THEN 'ready' ELSE 'waiting' END,
    run_at = COALESCE(:run_at, run_at),
    priority = COALESCE(:priority, priority),
    queue = COALESCE(:queue, queue),
    origin = CASE WHEN :queue IS NULL OR :queue = queue THEN origin END,
    max_attempts = CASE WHEN :has_limit THEN :max_attempts ELSE max_attempts END,
    args = COALESCE(:args, args),
    delivery = COALESCE(:delivery, delivery)
WHERE
    id = :id
-- [INV-23] Only what has not started is changed.
    AND (state = 'waiting' OR state = 'ready')
