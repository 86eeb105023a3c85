-- unpark: claims parked jobs of some tasks in a queue for a worker whose lease holds; none when the queue is paused.
-- Parameters: worker, queue, tasks, count (how many at most), max_retries_running (null: no cap), concurrency (null: no
--     limit), now.
-- Rows: the jobs claimed, in no order.
-- Concurrency: as in fetch.sql: a job that another is about to claim is skipped. Cap and limit are exact when fetch_lock.sql ran
--     before it in the same transaction.
-- Indexes: jobs_parked, once for each task; jobs_retrying for the cap; jobs_running for the limit; claims by the primary key.
WITH want AS MATERIALIZED (
    SELECT
        /*+ room */ AS room,
        /*+ most_retries */ AS most_retries,
        /*+ now */ AS now,
        EXISTS (
            SELECT 1
            FROM perdure.workers
            WHERE workers.id = :worker::text
        )
-- [INV-13] A paused queue gives nothing, in either lane.
        AND NOT EXISTS (
            SELECT 1
            FROM perdure.queues
            WHERE
                queues.name = :queue::text
                AND (queues.paused_until IS NULL OR queues.paused_until > /*+ now */)
        ) AS may_give
),

fresh AS MATERIALIZED (
    SELECT parked.id
    FROM UNNEST(:tasks::text[]) AS known (task)
    CROSS JOIN LATERAL (
        SELECT jobs.id
        FROM perdure.jobs
        WHERE
            jobs.state = 'waiting'
            AND jobs.reason = 'parked'
            AND jobs.queue = :queue::text
            AND jobs.task = known.task
            AND jobs.lane = 'fresh'
            AND (SELECT want.may_give FROM want)
        LIMIT :count::bigint
        FOR UPDATE SKIP LOCKED
    ) AS parked
    LIMIT (SELECT want.room FROM want)
),

retry AS MATERIALIZED (
    SELECT parked.id
    FROM UNNEST(:tasks::text[]) AS known (task)
    CROSS JOIN LATERAL (
        SELECT jobs.id
        FROM perdure.jobs
        WHERE
            jobs.state = 'waiting'
            AND jobs.reason = 'parked'
            AND jobs.queue = :queue::text
            AND jobs.task = known.task
            AND jobs.lane = 'retry'
            AND (SELECT want.may_give FROM want)
        LIMIT :count::bigint
        FOR UPDATE SKIP LOCKED
    ) AS parked
    LIMIT (SELECT LEAST(want.room - (SELECT COUNT(*) FROM fresh), want.most_retries) FROM want)
)

UPDATE perdure.jobs
SET
    /*+ claimed */
WHERE id = ANY(
    ARRAY(
        SELECT fresh.id FROM fresh
        UNION ALL
        SELECT retry.id FROM retry
    )
)
RETURNING
    /*+ claimed_columns */
