-- fetch: claims the first ready jobs of each lane of a queue for a worker whose lease holds; none when it is paused.
-- Parameters: worker, queue, count (how many at most), share and carry (in millionths), is_strict, max_retries_running
--     (null: no cap), concurrency (null: no limit), now.
-- Rows: the jobs claimed, in no order, each with the room offered; see fetch_nothing.sql when there are none.
-- Concurrency: a job that another fetch is about to claim is skipped, not waited for; each job is locked before it is
--     claimed, and no more are locked than are claimed. The inner LIMIT tells the planner how few are wanted, the outer
--     one how many it turns out to be. Cap and limit are exact when fetch_lock.sql ran before it in the same transaction. A
--     fetch that began before a pause was durable may still claim.
-- Indexes: jobs_ready, read in order up to the limits; jobs_retrying for the cap; jobs_running, all of it, for the limit:
--     what runs is few, and a claim writes no further index for it; claims by the primary key.
WITH offered AS MATERIALIZED (
    SELECT /*+ room */ AS room
),

want AS MATERIALIZED (
    SELECT
        offered.room,
        (:carry::bigint + offered.room * :share::bigint) / 1000000 AS retry,
        /*+ most_retries */ AS most_retries,
        /*+ now */ AS now,
        EXISTS (
            SELECT 1
            FROM perdure.workers
            WHERE
                workers.id = :worker::text
                AND workers.lease_until > /*+ now */
        )
-- [INV-13] A paused queue gives nothing, in either lane.
        AND NOT EXISTS (
            SELECT 1
            FROM perdure.queues
            WHERE
                queues.name = :queue::text
                AND (queues.paused_until IS NULL OR queues.paused_until > /*+ now */)
        ) AS may_give
    FROM offered
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
            AND (SELECT want.may_give FROM want)
        ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
        LIMIT :count::bigint
        FOR UPDATE SKIP LOCKED
    ) AS first
    LIMIT (SELECT LEAST(want.retry, want.most_retries) FROM want)
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
            AND (SELECT want.may_give FROM want)
        ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
        LIMIT :count::bigint
        FOR UPDATE SKIP LOCKED
    ) AS first
    LIMIT (
        SELECT want.room - CASE WHEN :is_strict::boolean THEN want.retry ELSE (SELECT COUNT(*) FROM retry) END
        FROM want
    )
),

more_retry AS MATERIALIZED (
    SELECT first.id
    FROM (
        SELECT jobs.id
        FROM perdure.jobs
        WHERE
            jobs.state = 'ready'
            AND jobs.queue = :queue::text
            AND jobs.lane = 'retry'
            AND (SELECT want.may_give FROM want)
            AND jobs.id NOT IN (SELECT retry.id FROM retry)
        ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
        LIMIT :count::bigint
        FOR UPDATE SKIP LOCKED
    ) AS first
    LIMIT (
        SELECT
            CASE
                WHEN :is_strict::boolean THEN 0
                ELSE LEAST(want.room - (SELECT COUNT(*) FROM fresh), want.most_retries) - (SELECT COUNT(*) FROM retry)
            END
        FROM want
    )
)

UPDATE perdure.jobs
SET
    state = 'running',
-- [INV-4] Here and in fetch_due.sql, and nowhere else, an attempt gets its number.
    attempt = attempt + 1,
    worker = :worker::text,
    started_at = (SELECT want.now FROM want)
WHERE id = ANY(
    ARRAY(
        SELECT retry.id FROM retry
        UNION ALL
        SELECT fresh.id FROM fresh
        UNION ALL
        SELECT more_retry.id FROM more_retry
    )
)
RETURNING
    /*+ job_columns */,
    (SELECT want.room FROM want)
