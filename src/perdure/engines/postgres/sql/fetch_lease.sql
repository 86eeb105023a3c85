-- fetch: whether the worker's lease holds, and which of some queues have something ready.
-- Parameters: worker, queues (names), count (how many queues), now.
-- Rows: one (whether the lease holds, names of queues, whether it took long to find them).
-- Concurrency: for the queues a hint only; the claim itself decides.
-- Indexes: the primary key of workers, jobs_ready in its order.
SELECT
    EXISTS (
        SELECT 1
        FROM perdure.workers
        WHERE workers.id = :worker::text
    ),
    ARRAY(
        SELECT wanted.name
        FROM UNNEST(:queues::text[]) AS wanted (name)
        WHERE (
            SELECT jobs.id
            FROM perdure.jobs
            WHERE
                jobs.state = 'ready'
                AND jobs.queue = wanted.name
            ORDER BY jobs.lane, jobs.priority DESC, jobs.run_at, jobs.id
            LIMIT 1
        ) IS NOT NULL
    ),
    /*+ is_slow */
