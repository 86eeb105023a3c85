-- pause: stops fetching from a queue, until a moment if one is given.
-- Parameters: queue, reason, until (null: until somebody resumes it), now.
-- Rows: one (name) if that changed anything, else none.
-- Concurrency: a fetch that begins after it finds nothing in the queue.
-- Indexes: the primary key of queues.
INSERT INTO perdure.queues AS queues (name, paused_at, paused_until, pause_reason)
VALUES (:queue::text, /*+ now */, :until::bigint, :reason::text)
ON CONFLICT (name) DO UPDATE
SET
    paused_at = CASE WHEN queues.paused_until <= /*+ now */ THEN /*+ now */ ELSE queues.paused_at END,
    paused_until = :until::bigint,
    pause_reason = CASE
        WHEN queues.paused_until <= /*+ now */ THEN :reason::text
        ELSE COALESCE(:reason::text, queues.pause_reason)
    END
WHERE
    queues.paused_until <= /*+ now */
    OR queues.paused_until <> :until::bigint
    OR (queues.paused_until IS NULL) <> (:until::bigint IS NULL)
RETURNING queues.name
