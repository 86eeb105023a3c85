-- fetch: what a fetch that claimed nothing was up against.
-- Parameters: worker, queue, count, max_retries_running, concurrency, now, as fetch.sql takes them.
-- Rows: one (the room that was offered, whether a strict want could have been given anything, whether the worker's lease
--     holds, whether it took long to find that out).
-- Concurrency: reads only. What became ready since the fetch counts too: then it was offered room and gave nothing.
-- Indexes: jobs_ready in its order, also where only one is looked for: an EXISTS would make the planner look through all
--     jobs, expecting to find one soon; jobs_retrying for the cap; jobs_running, all of it, for the limit.
SELECT
    /*+ room */,
    NOT EXISTS (
        SELECT 1
        FROM perdure.queues
        WHERE
            queues.name = :queue::text
            AND (queues.paused_until IS NULL OR queues.paused_until > /*+ now */)
    )
    AND (
        (
            SELECT jobs.id
            FROM perdure.jobs
            WHERE
                jobs.state = 'ready'
                AND jobs.queue = :queue::text
                AND jobs.lane = 'fresh'
            ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
            LIMIT 1
        ) IS NOT NULL
        OR (
            (
                SELECT jobs.id
                FROM perdure.jobs
                WHERE
                    jobs.state = 'ready'
                    AND jobs.queue = :queue::text
                    AND jobs.lane = 'retry'
                ORDER BY jobs.priority DESC, jobs.run_at, jobs.id
                LIMIT 1
            ) IS NOT NULL
            AND /*+ most_retries */ > 0
        )
    ),
    EXISTS (
        SELECT 1
        FROM perdure.workers
        WHERE workers.id = :worker::text
    ),
    /*+ is_slow */
