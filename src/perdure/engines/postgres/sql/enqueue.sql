-- enqueue: makes jobs, but none whose id or tick exists or whose (task, unique key) is taken by a live job.
-- Parameters: jobs (a JSON array of objects, bytes in base64), now, channel (to wake others through; null: wake nobody),
--     sender (what the wake-up says).
-- Rows: one (the ids of those jobs with a unique key that were made, nothing).
-- Concurrency: all conflicts are decided by unique indexes, so of two equal enqueues one makes the job; the other waits
--     for it. Keys are taken in one order by everybody, so that batches do not wait for each other in a circle; of one
--     key twice in a batch the first makes the job.
-- Indexes: the primary key, jobs_unique, jobs_tick.
WITH asked AS MATERIALIZED (
    SELECT
        one.*,
        /*+ now */ AS now
    FROM JSON_TO_RECORDSET(:jobs::text::json) AS one (
        place integer,
        id uuid,
        task text,
        queue text,
        priority integer,
        delay bigint,
        run_at bigint,
        delivery text,
        unique_key text,
        max_attempts integer,
        retry text,
        timeout bigint,
        args text,
        schedule text,
        tick_at bigint
    )
),

made AS (
    INSERT INTO perdure.jobs (
        id,
        task,
        queue,
        state,
        priority,
        run_at,
        delivery,
        created_at,
        unique_key,
        max_attempts,
        retry,
        timeout,
        args,
        schedule,
        tick_at
    )
    SELECT
        asked.id,
        asked.task,
        asked.queue,
        CASE WHEN COALESCE(asked.now + asked.delay, asked.run_at, asked.now) <= asked.now THEN 'ready' ELSE 'waiting' END,
        asked.priority,
        COALESCE(asked.now + asked.delay, asked.run_at, asked.now),
        asked.delivery,
        asked.now,
        asked.unique_key,
        asked.max_attempts,
        asked.retry,
        asked.timeout,
        DECODE(asked.args, 'base64'),
        asked.schedule,
        asked.tick_at
    FROM asked
    ORDER BY asked.task, asked.unique_key, asked.place
    ON CONFLICT DO NOTHING
    RETURNING jobs.id, jobs.unique_key
)

SELECT
    ARRAY(SELECT made.id::text FROM made WHERE made.unique_key IS NOT NULL),
    CASE WHEN :channel::text IS NOT NULL THEN PG_NOTIFY(:channel::text, :sender::text)::text END
