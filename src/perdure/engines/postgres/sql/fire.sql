-- fire: takes steps of schedules, each if its schedule has the revision that the step is based on, and makes their jobs.
-- Parameters: steps (a JSON array of objects with place, name, replaces, needs_idle, revision, next_at, is_queued, document;
--     no name twice; no revision: the schedule goes), jobs (a JSON array of objects, place is that of their step, bytes in
--     base64), now.
-- Rows: one (the places of steps that were taken, those of steps that had been taken before).
-- Concurrency: a schedule that another is changing is skipped, not waited for: of any number of equal steps one is taken. The
--     jobs and the schedule change in this one statement, or neither does.
-- Indexes: the primary key of schedules, jobs_unfinished, jobs_tick, the primary key of jobs.
WITH asked AS MATERIALIZED (
    SELECT
        one.*,
        /*+ now */ AS now
    FROM JSON_TO_RECORDSET(:steps::text::json) AS one (
        place integer,
        name text,
        replaces text,
        needs_idle boolean,
        revision text,
        next_at bigint,
        is_queued boolean,
        document text
    )
),

taken AS MATERIALIZED (
    SELECT asked.*
    FROM perdure.schedules
    INNER JOIN asked ON asked.name = schedules.name
-- [INV-21] A tick is one revision's to fire, and the revision changes with it.
    WHERE
        schedules.revision = asked.replaces
        AND (
            NOT asked.needs_idle
            OR (
                SELECT jobs.id
                FROM perdure.jobs
                WHERE
                    jobs.schedule = asked.name
                    AND jobs.ended_at IS NULL
                LIMIT 1
            ) IS NULL
        )
    ORDER BY schedules.name
    FOR UPDATE OF schedules SKIP LOCKED
),

changed AS (
    UPDATE perdure.schedules
    SET
        revision = taken.revision,
        next_at = taken.next_at,
        is_queued = taken.is_queued,
        document = taken.document
    FROM taken
    WHERE
        schedules.name = taken.name
        AND taken.revision IS NOT NULL
),

removed AS (
    DELETE FROM perdure.schedules
    USING taken
    WHERE
        schedules.name = taken.name
        AND taken.revision IS NULL
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
        max_attempts,
        retry,
        timeout,
        args,
        schedule,
        tick_at
    )
    SELECT
        job.id,
        job.task,
        job.queue,
        CASE WHEN job.run_at <= taken.now THEN 'ready' ELSE 'waiting' END,
        job.priority,
        job.run_at,
        job.delivery,
        taken.now,
        job.max_attempts,
        job.retry,
        job.timeout,
        DECODE(job.args, 'base64'),
        job.schedule,
        job.tick_at
    FROM JSON_TO_RECORDSET(:jobs::text::json) AS job (
        place integer,
        id uuid,
        task text,
        queue text,
        priority integer,
        run_at bigint,
        delivery text,
        max_attempts integer,
        retry text,
        timeout bigint,
        args text,
        schedule text,
        tick_at bigint
    )
    INNER JOIN taken ON taken.place = job.place
    ORDER BY job.id
    ON CONFLICT DO NOTHING
)

SELECT
    ARRAY(SELECT taken.place FROM taken),
    ARRAY(
        SELECT asked.place
        FROM asked
        INNER JOIN perdure.schedules ON schedules.name = asked.name
        WHERE schedules.revision = asked.revision
    )
