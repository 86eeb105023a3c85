-- fetch: claims fresh jobs of a queue that wait and are due, the longest due first, for a worker whose lease holds; none
--     when it is paused.
-- Parameters: worker, queue, count (how many at most), look (how many of all that is due are looked at), now.
-- Rows: the jobs claimed, in no order.
-- Concurrency: a job that another fetch or promote is about to take is skipped, not waited for; what is looked at and not
--     claimed is skipped by others until the transaction ends.
-- Indexes: jobs_waiting, read in order up to the limit; claims by the primary key.
UPDATE perdure.jobs
SET
    state = 'running',
-- [INV-4] Here and in fetch.sql, and nowhere else, an attempt gets its number.
    attempt = attempt + 1,
    worker = :worker::text,
    started_at = /*+ now */
WHERE id = ANY(
    ARRAY(
        SELECT first.id
        FROM (
            SELECT
                jobs.id,
                jobs.queue,
                jobs.lane
            FROM perdure.jobs
            WHERE
                jobs.state = 'waiting'
-- [INV-16] Nothing is claimed before its run_at, by the store's clock.
                AND jobs.run_at <= /*+ now */
                AND (
                    SELECT
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
                        )
                )
            ORDER BY jobs.run_at, jobs.id
            LIMIT :look::bigint
            FOR UPDATE SKIP LOCKED
        ) AS first
        WHERE
            first.queue = :queue::text
-- [INV-9] What is to be tried again is left to a promote, so that the lanes keep their shares.
            AND first.lane = 'fresh'
        LIMIT :count::bigint
    )
)
RETURNING /*+ job_columns */
