-- The ready jobs that a fetch claims, lane by lane, as the beginning of its WITH: offered, want, retry, fresh, more_retry.
offered AS MATERIALIZED (
    SELECT /*+ room */ AS room
),

want AS MATERIALIZED (
    SELECT
        offered.room,
        (:carry::bigint + (offered.room * :share::bigint)) / 1000000 AS retry,
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
            AND NOT jobs.id = ANY(SELECT retry.id FROM retry)
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
