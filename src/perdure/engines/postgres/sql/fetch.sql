-- fetch: claims the first ready jobs of each lane of a queue for a worker whose lease holds; none when it is paused.
-- Parameters: worker, queue, count (how many at most), share and carry (in millionths), is_strict, max_retries_running
--     (null: no cap), concurrency (null: no limit), now.
-- Rows: the jobs claimed, in no order, each with the room offered, whether a strict want could have been given anything,
--     and whether the worker's lease holds; one of nulls when there are none.
-- Concurrency: a job that another fetch is about to claim is skipped, not waited for; each job is locked before it is
--     claimed, and no more are locked than are claimed. The inner LIMIT tells the planner how few are wanted, the outer
--     one how many it turns out to be. Cap and limit are exact when fetch_lock.sql ran before it in the same transaction. A
--     fetch that began before a pause was durable may still claim.
-- Indexes: jobs_ready, read in order up to the limits, also where only one is looked for: an EXISTS would make the
--     planner look through all jobs, expecting to find one soon; jobs_retrying for the cap; jobs_running, all of it, for the
--     limit: what runs is few, and a claim writes no further index for it; claims by the primary key.
WITH offered AS MATERIALIZED (
    SELECT
        CASE
-- [INV-17] Counted under the lock of fetch_lock.sql, so that the limit is exact over all workers.
            WHEN :concurrency::integer IS NOT NULL THEN LEAST(
                :count::bigint,
                GREATEST(
                    0,
                    :concurrency::integer - (
                        SELECT COUNT(*)
                        FROM perdure.jobs
                        WHERE
                            jobs.state = 'running'
                            AND jobs.queue = :queue::text
                    )
                )
            )
            ELSE :count::bigint
        END AS room
),

want AS MATERIALIZED (
    SELECT
        offered.room,
        (:carry::bigint + offered.room * :share::bigint) / 1000000 AS retry,
        /*+ now */ AS now,
        EXISTS (
            SELECT 1
            FROM perdure.workers
            WHERE
                workers.id = :worker::text
                AND workers.lease_until > /*+ now */
        ) AS is_living,
-- [INV-13] A paused queue gives nothing, in either lane.
        EXISTS (
            SELECT 1
            FROM perdure.queues
            WHERE
                queues.name = :queue::text
                AND (queues.paused_until IS NULL OR queues.paused_until > /*+ now */)
        ) AS is_paused,
        CASE
            WHEN :is_strict::boolean THEN (
                SELECT jobs.id
                FROM perdure.jobs
                WHERE
                    jobs.state = 'ready'
                    AND jobs.queue = :queue::text
                    AND jobs.lane = 'fresh'
                ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
                LIMIT 1
            ) IS NOT NULL
            ELSE FALSE
        END AS has_fresh,
        (
            SELECT jobs.id
            FROM perdure.jobs
            WHERE
                jobs.state = 'ready'
                AND jobs.queue = :queue::text
                AND jobs.lane = 'retry'
            ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
            LIMIT 1
        ) IS NOT NULL AS has_retries,
        CASE
-- [INV-10] Counted under the lock of fetch_lock.sql, so that the cap is exact over all workers.
            WHEN :max_retries_running::integer IS NOT NULL THEN GREATEST(
                0,
                :max_retries_running::integer - (
                    SELECT COUNT(*)
                    FROM perdure.jobs
                    WHERE
                        jobs.state = 'running'
                        AND jobs.lane = 'retry'
                        AND jobs.queue = :queue::text
                )
            )
            ELSE offered.room
        END AS most_retries
    FROM offered
),

fresh AS MATERIALIZED (
    SELECT first.id
    FROM (
        SELECT jobs.id
        FROM perdure.jobs
        WHERE
            jobs.state = 'ready'
            AND jobs.queue = :queue::text
            AND jobs.lane = 'fresh'
            AND (SELECT want.is_living AND NOT want.is_paused FROM want)
        ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
        LIMIT :count::bigint
        FOR UPDATE SKIP LOCKED
    ) AS first
    LIMIT (
        SELECT CASE WHEN want.has_retries OR :is_strict::boolean THEN want.room - want.retry ELSE want.room END
        FROM want
    )
),

retry AS MATERIALIZED (
    SELECT first.id
    FROM (
        SELECT jobs.id
        FROM perdure.jobs
        WHERE
            jobs.state = 'ready'
            AND jobs.queue = :queue::text
            AND jobs.lane = 'retry'
            AND (SELECT want.is_living AND NOT want.is_paused FROM want)
        ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
        LIMIT :count::bigint
        FOR UPDATE SKIP LOCKED
    ) AS first
    LIMIT (
        SELECT
            LEAST(
                want.most_retries,
                CASE
                    WHEN :is_strict::boolean THEN want.retry
                    ELSE want.room - (SELECT COUNT(*) FROM fresh)
                END
            )
        FROM want
    )
),

more_fresh AS MATERIALIZED (
    SELECT first.id
    FROM (
        SELECT jobs.id
        FROM perdure.jobs
        WHERE
            jobs.state = 'ready'
            AND jobs.queue = :queue::text
            AND jobs.lane = 'fresh'
            AND (SELECT want.is_living AND NOT want.is_paused FROM want)
            AND jobs.id NOT IN (SELECT fresh.id FROM fresh)
        ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
        LIMIT :count::bigint
        FOR UPDATE SKIP LOCKED
    ) AS first
    LIMIT (
        SELECT
            CASE
                WHEN :is_strict::boolean THEN 0
                ELSE want.room - (SELECT COUNT(*) FROM fresh) - (SELECT COUNT(*) FROM retry)
            END
        FROM want
    )
),

jobs AS (
    UPDATE perdure.jobs
    SET
        state = 'running',
-- [INV-4] The only place that writes an attempt's number.
        attempt = attempt + 1,
        worker = :worker::text,
        started_at = (SELECT want.now FROM want)
    WHERE id = ANY(
        ARRAY(
            SELECT fresh.id FROM fresh
            UNION ALL
            SELECT retry.id FROM retry
            UNION ALL
            SELECT more_fresh.id FROM more_fresh
        )
    )
    RETURNING jobs.*
)

SELECT
    /*+ job_columns */,
    want.room,
    NOT want.is_paused AND (want.has_fresh OR (want.has_retries AND want.most_retries > 0)),
    want.is_living
FROM want
LEFT JOIN jobs ON TRUE
