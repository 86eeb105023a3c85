-- forward: claims due forwards, the longest due first; each has one try more.
-- Parameters: queues (a JSON array of names), limit, now, until (when the claim ends).
-- Rows: the forwards claimed, in no order.
-- Concurrency: runs under the write lock, so each is claimed once; a claim that has run out is due again.
-- Indexes: perdure_forwards_due, then the primary key.
UPDATE perdure_forwards
SET
    tries = tries + 1,
    tried_at = :now,
    next_at = :until
WHERE job_id IN (
    SELECT job_id
    FROM perdure_forwards INDEXED BY perdure_forwards_due
    WHERE
        next_at IS NOT NULL
        AND next_at <= :now
        AND queue IN (SELECT value FROM JSON_EACH(:queues))
    ORDER BY next_at
    LIMIT :limit
)
RETURNING
    /*+ forward_columns */
