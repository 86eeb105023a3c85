-- forward: claims due forwards, the longest due first; each has one try more.
-- Parameters: queues, limit, lease, now.
-- Rows: the forwards claimed, in no order.
-- Concurrency: one that another claims is skipped; a claim that has run out is due again.
-- Indexes: forwards_due, then the primary key.
UPDATE perdure.forwards
SET
    tries = forwards.tries + 1,
    tried_at = /*+ now */,
    next_at = /*+ now */ + :lease::bigint
WHERE forwards.job_id = ANY(
    ARRAY(
        SELECT due.job_id
        FROM perdure.forwards AS due
        WHERE
            due.next_at IS NOT NULL
            AND due.next_at <= /*+ now */
            AND due.queue = ANY(:queues::text[])
        ORDER BY due.next_at
        LIMIT :limit::bigint
        FOR UPDATE SKIP LOCKED
    )
)
RETURNING
    /*+ forward_columns */
