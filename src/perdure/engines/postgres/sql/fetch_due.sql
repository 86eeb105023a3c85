-- fetch: claims what fetch.sql claims; where that leaves room, also fresh jobs that wait and are due, the longest due first.
-- Parameters: as fetch.sql, and look (how many of all that is due are looked at).
-- Rows: the jobs claimed, in no order, each with the room offered and how many of all waited; see fetch_nothing.sql when
--     there are none.
-- Concurrency: as fetch.sql. What is looked at and not claimed is skipped by others until the transaction ends.
-- Indexes: those of fetch.sql; jobs_waiting, read in order up to the limit.
WITH /*+ first_ready */,

due AS MATERIALIZED (
    SELECT first.id
    FROM (
        SELECT
            jobs.id,
            jobs.queue,
            jobs.lane
        FROM perdure.jobs
        WHERE
            jobs.state = 'waiting'
-- [INV-16] Nothing is claimed before its run_at, by the store's clock.
            AND jobs.run_at <= /*+ now */
            AND (SELECT want.may_give FROM want)
        ORDER BY jobs.run_at, jobs.id
        LIMIT :look::bigint
        FOR UPDATE SKIP LOCKED
    ) AS first
    WHERE
        first.queue = :queue::text
-- [INV-9] What is to be tried again is left to a promote, so that the lanes keep their shares.
        AND first.lane = 'fresh'
    LIMIT (
        SELECT
            want.room - (SELECT COUNT(*) FROM fresh) - CASE
                WHEN :is_strict::boolean THEN want.retry
                ELSE (SELECT COUNT(*) FROM retry) + (SELECT COUNT(*) FROM more_retry)
            END
        FROM want
    )
)

UPDATE perdure.jobs
SET
    /*+ claimed */
WHERE id = ANY(
    ARRAY(
        SELECT retry.id FROM retry
        UNION ALL
        SELECT fresh.id FROM fresh
        UNION ALL
        SELECT more_retry.id FROM more_retry
        UNION ALL
        SELECT due.id FROM due
    )
)
RETURNING
    /*+ claimed_columns */,
    (SELECT want.room FROM want),
    (SELECT COUNT(*) FROM due)
