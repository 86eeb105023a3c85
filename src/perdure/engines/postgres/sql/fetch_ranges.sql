-- fetch: claims as fetch.sql does, but reads only the given ranges of jobs_ready.
-- Parameters: as fetch.sql takes them, and ranges (a JSON array of objects, by lane and from the highest priority to the
--     lowest): lane, high and low (the priorities of the range), early_at, early_id, until_at, until_id (an early range
--     from one position to below another; null: none), late_at, late_id (the position where the late range begins).
-- Rows: one per job claimed, in no order, or one without a job; each with the room offered, whether the worker's lease
--     holds, whether the queue is open, whether a strict want that got nothing could have been given something, whether
--     the fresh and the retry ranges were read to their end, the time, how many microseconds it took to find the jobs,
--     and the server's snapshot as a text, on the first row only.
-- Concurrency: as in fetch.sql. To find out what a strict want could be given, one job is locked until the statement ends.
-- Indexes: jobs_ready, as ready_in_ranges.sql says; jobs_retrying for the cap; jobs_running for the limit; claims by the
--     primary key.
WITH offered AS MATERIALIZED (
    SELECT
        /*+ room */ AS room,
        /*+ real_time */ AS began_at
),

want AS MATERIALIZED (
    SELECT
        offered.room,
        offered.began_at,
        (:carry::bigint + (offered.room * :share::bigint)) / 1000000 AS retry,
        /*+ most_retries */ AS most_retries,
        /*+ now */ AS now,
        EXISTS (
            SELECT 1
            FROM perdure.workers
            WHERE workers.id = :worker::text
        ) AS is_living,
-- [INV-13] A paused queue gives nothing, in either lane.
        NOT EXISTS (
            SELECT 1
            FROM perdure.queues
            WHERE
                queues.name = :queue::text
                AND (queues.paused_until IS NULL OR queues.paused_until > /*+ now */)
        ) AS is_open
    FROM offered
),

retry AS MATERIALIZED (
    SELECT found.id
    FROM
        /*+ ready_in_ranges */
    WHERE
        part.lane = 'retry'
        AND (SELECT want.is_living AND want.is_open FROM want)
    LIMIT (SELECT LEAST(want.retry, want.most_retries) FROM want)
),

fresh_want AS MATERIALIZED (
    SELECT want.room - CASE WHEN :is_strict::boolean THEN want.retry ELSE (SELECT COUNT(*) FROM retry) END AS room
    FROM want
),

fresh AS MATERIALIZED (
    SELECT found.id
    FROM
        /*+ ready_in_ranges */
    WHERE
        part.lane = 'fresh'
        AND (SELECT want.is_living AND want.is_open FROM want)
    LIMIT (SELECT fresh_want.room FROM fresh_want)
),

more_want AS MATERIALIZED (
    SELECT
        CASE
            WHEN :is_strict::boolean THEN 0
            ELSE LEAST(want.room - (SELECT COUNT(*) FROM fresh), want.most_retries) - (SELECT COUNT(*) FROM retry)
        END AS room
    FROM want
),

more_retry AS MATERIALIZED (
    SELECT found.id
    FROM
        /*+ ready_in_ranges */
    WHERE
        part.lane = 'retry'
        AND NOT found.id = ANY(SELECT retry.id FROM retry)
        AND (SELECT want.is_living AND want.is_open FROM want)
    LIMIT (SELECT more_want.room FROM more_want)
),

-- The columns are evaluated in their order: the clock is read when the jobs have been found.
chosen AS MATERIALIZED (
    SELECT
        ARRAY(
            SELECT retry.id FROM retry
            UNION ALL
            SELECT fresh.id FROM fresh
            UNION ALL
            SELECT more_retry.id FROM more_retry
        ) AS ids,
        /*+ real_time */ - (SELECT want.began_at FROM want) AS took
),

possible AS MATERIALIZED (
    SELECT found.id
    FROM
        /*+ ready_in_ranges */
    WHERE
        :is_strict::boolean
        AND (SELECT CARDINALITY(chosen.ids) = 0 FROM chosen)
        AND (SELECT want.is_living AND want.is_open FROM want)
        AND (part.lane = 'fresh' OR (SELECT want.most_retries > 0 FROM want))
    LIMIT 1
),

taken AS (
    UPDATE perdure.jobs
    SET
        /*+ claimed */
    WHERE id = ANY((SELECT chosen.ids FROM chosen)::uuid[])
    RETURNING
        /*+ claimed_columns */
)

SELECT
    taken.*,
    want.room,
    want.is_living,
    want.is_open,
    EXISTS (SELECT 1 FROM possible),
    (SELECT COUNT(*) FROM fresh) < (SELECT fresh_want.room FROM fresh_want),
    (SELECT COUNT(*) FROM retry) < LEAST(want.retry, want.most_retries)
    OR (SELECT COUNT(*) FROM more_retry) < (SELECT more_want.room FROM more_want),
    want.now,
    chosen.took,
    CASE WHEN ROW_NUMBER() OVER () = 1 THEN PG_CURRENT_SNAPSHOT()::text END
FROM want
CROSS JOIN chosen
LEFT JOIN taken ON TRUE
