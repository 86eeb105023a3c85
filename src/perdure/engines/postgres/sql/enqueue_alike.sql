-- enqueue: makes jobs that differ in nothing but their ids and arguments and have no unique key; none whose id exists.
-- Parameters: ids, args (one for each id), task, queue, priority, delay, run_at, delivery, max_attempts, retry, timeout,
--     now, channel and sender as in enqueue.sql.
-- Rows: one (nothing).
-- Concurrency: as in enqueue.sql.
-- Indexes: the primary key.
WITH made AS (
    INSERT INTO perdure.jobs (
        id,
        task,
        queue,
        state,
        priority,
        run_at,
        delivery,
        created_at,
        max_attempts,
        retry,
        timeout,
        args
    )
    SELECT
        each.id,
        :task::text,
        :queue::text,
        CASE WHEN asked.run_at <= asked.now THEN 'ready' ELSE 'waiting' END,
        :priority::integer,
        asked.run_at,
        :delivery::text,
        asked.now,
        :max_attempts::integer,
        :retry::text,
        :timeout::bigint,
        each.args
    FROM (
        SELECT
            moment.now,
            COALESCE(moment.now + :delay::bigint, :run_at::bigint, moment.now) AS run_at
        FROM (SELECT /*+ now */ AS now) AS moment
-- Worked out once, not once for each job.
        OFFSET 0
    ) AS asked
    CROSS JOIN ROWS FROM (UNNEST(:ids::uuid[]), UNNEST(:args::bytea[])) AS each (id, args)
    ON CONFLICT DO NOTHING
)

SELECT CASE WHEN :channel::text IS NOT NULL THEN PG_NOTIFY(:channel::text, :sender::text)::text END
