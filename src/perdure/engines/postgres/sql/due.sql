-- due: the schedules whose tick has come, the longest due first, and those with a backlog and no unfinished job.
-- Parameters: now, limit.
-- Rows: the schedules, each with the store's time and when the first of all is due; one of nulls when there are none.
-- Concurrency: reads only; what follows is fenced by the revision.
-- Indexes: schedules_next, schedules_queued, jobs_unfinished. A NOT EXISTS could make the planner read all unfinished jobs,
--     whoever made them.
WITH look AS MATERIALIZED (
    SELECT
        /*+ now */ AS now,
        (
            SELECT schedules.next_at
            FROM perdure.schedules
            WHERE schedules.next_at IS NOT NULL
            ORDER BY schedules.next_at
            LIMIT 1
        ) AS next_at
),

found AS MATERIALIZED (
    (
        SELECT
            schedules.name,
            schedules.next_at,
            0 AS turn
        FROM perdure.schedules
        WHERE
            schedules.next_at IS NOT NULL
            AND schedules.next_at <= (SELECT look.now FROM look)
        ORDER BY schedules.next_at
        LIMIT :limit::bigint
    )
    UNION ALL
    (
        SELECT
            schedules.name,
            schedules.next_at,
            1 AS turn
        FROM perdure.schedules
        WHERE
            schedules.is_queued
            AND (schedules.next_at IS NULL OR schedules.next_at > (SELECT look.now FROM look))
            AND (
                SELECT jobs.id
                FROM perdure.jobs
                WHERE
                    jobs.schedule = schedules.name
                    AND jobs.ended_at IS NULL
                LIMIT 1
            ) IS NULL
        ORDER BY schedules.name
        LIMIT :limit::bigint
    )
    ORDER BY 3, 2, 1
    LIMIT :limit::bigint
)

SELECT
    /*+ schedule_columns */,
    look.now,
    look.next_at
FROM look
LEFT JOIN found ON TRUE
LEFT JOIN perdure.schedules ON schedules.name = found.name
ORDER BY found.turn, found.next_at, found.name
