-- reap: running jobs that have no living worker.
-- Parameters: limit.
-- Rows: the jobs, in no order.
-- Concurrency: reads only; the commit of what is decided about each is fenced.
-- Indexes: jobs_running, between the names of one living worker and the next: entries of the living are not read, neither
--     those of jobs that run nor those that ended jobs left while an old snapshot is open; the primary key of workers.
WITH gap AS MATERIALIZED (
    SELECT
        COALESCE(LAG(workers.id) OVER (ORDER BY workers.id), '') AS above,
        workers.id AS below
    FROM perdure.workers
),

last AS MATERIALIZED (
    SELECT COALESCE(MAX(workers.id), '') AS above
    FROM perdure.workers
),

orphan AS MATERIALIZED (
    (
        SELECT held.id
        FROM gap
        CROSS JOIN LATERAL (
            SELECT running.id
            FROM perdure.jobs AS running
            WHERE
                running.state = 'running'
                AND running.worker > gap.above
                AND running.worker < gap.below
            ORDER BY running.worker
            LIMIT :limit::bigint
        ) AS held
        LIMIT :limit::bigint
    )
    UNION ALL
    (
        SELECT running.id
        FROM perdure.jobs AS running
        WHERE
            running.state = 'running'
            AND running.worker > (SELECT last.above FROM last)
        ORDER BY running.worker
        LIMIT :limit::bigint
    )
)

SELECT
    /*+ job_columns */
FROM perdure.jobs
WHERE jobs.id = ANY(ARRAY(SELECT orphan.id FROM orphan))
LIMIT :limit::bigint
