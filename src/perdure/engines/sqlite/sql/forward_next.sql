-- forward: when the next forward of these queues is due.
-- Parameters: queues (a JSON array of names).
-- Rows: one (next_at), or none when none waits.
-- Concurrency: reads only.
-- Indexes: perdure_forwards_due.
SELECT next_at
FROM perdure_forwards INDEXED BY perdure_forwards_due
WHERE
    next_at IS NOT NULL
    AND queue IN (SELECT value FROM JSON_EACH(:queues))
ORDER BY next_at
LIMIT 1
