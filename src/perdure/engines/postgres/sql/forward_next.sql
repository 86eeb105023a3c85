-- forward: when the next forward of these queues is due, and whether that is now.
-- Parameters: queues, now.
-- Rows: one (next_at, whether it has come), or none when none waits.
-- Concurrency: reads only.
-- Indexes: forwards_due.
SELECT
    forwards.next_at,
    forwards.next_at <= /*+ now */
FROM perdure.forwards
WHERE
    forwards.next_at IS NOT NULL
    AND forwards.queue = ANY(:queues::text[])
ORDER BY forwards.next_at
LIMIT 1
