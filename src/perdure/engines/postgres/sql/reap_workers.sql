-- reap: strikes off vanished workers, and shows the newest renewal of each worker's lease.
-- Parameters: is_judged (whether the caller says whom to strike off), workers (ids), beats (the beat_at of each), now. If not
--     `is_judged`, those are struck off whose lease has run out by the store's clock.
-- Rows: (id, beat_at, the lease's length, what is left of it, whether it was struck off) of each worker.
-- Concurrency: any worker may run it; a worker is struck off once, and not when a beat renewed its lease first.
-- Indexes: none; the table has one row per worker.
WITH struck AS (
    DELETE FROM perdure.workers
    WHERE
        CASE
            WHEN :is_judged::boolean THEN EXISTS (
                SELECT 1
                FROM ROWS FROM (UNNEST(:workers::text[]), UNNEST(:beats::bigint[])) AS given (id, beat_at)
                WHERE
                    given.id = workers.id
                    AND given.beat_at = workers.beat_at
            )
            ELSE workers.lease_until <= /*+ now */
        END
    RETURNING workers.id
)

SELECT
    workers.id,
    workers.beat_at,
    workers.lease_until - workers.beat_at,
    workers.lease_until - /*+ now */,
    workers.id = ANY(SELECT struck.id FROM struck)
FROM perdure.workers
