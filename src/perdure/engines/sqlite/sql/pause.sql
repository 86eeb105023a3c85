-- pause: stops fetching from a queue, until a moment if one is given.
-- Parameters: queue, reason, until (null: until somebody resumes it), now.
-- Rows: none; the count of changed rows says whether that changed anything.
-- Concurrency: a fetch after it finds nothing in the queue.
-- Indexes: the primary key of perdure_queues.
INSERT INTO perdure_queues (name, paused_at, paused_until, pause_reason)
VALUES (:queue, :now, :until, :reason)
ON CONFLICT (name) DO UPDATE
SET
    paused_at = CASE WHEN paused_until <= :now THEN :now ELSE paused_at END,
    paused_until = :until,
    pause_reason = CASE WHEN paused_until <= :now THEN :reason ELSE COALESCE(:reason, pause_reason) END
WHERE
    paused_until <= :now
    OR paused_until IS NOT :until
