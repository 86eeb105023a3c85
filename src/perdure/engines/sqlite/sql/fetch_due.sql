-- fetch: fresh jobs of a queue that wait and are due, the longest due first; none when it is paused.
-- Parameters: queue, count (how many of all that is due are looked at), now.
-- Rows: one (rowids, a JSON array).
-- Concurrency: runs under the write lock of the claim.
-- Indexes: perdure_jobs_waiting alone, read in order up to the limit.
SELECT JSON_GROUP_ARRAY(first_due.job)
FROM (
    SELECT
        rowid AS job,
        queue,
        lane
    FROM perdure_jobs
    WHERE
        state = 'waiting'
-- [INV-16] Nothing is claimed before its run_at, by the store's clock.
        AND run_at <= :now
-- [INV-13] A paused queue gives nothing, in either lane.
        AND NOT EXISTS (
            SELECT 1
            FROM perdure_queues
            WHERE
                name = :queue
                AND (paused_until IS NULL OR paused_until > :now)
        )
    ORDER BY run_at
    LIMIT :count
) AS first_due
WHERE
    first_due.queue = :queue
-- [INV-9] What is to be tried again is left to a promote, so that the lanes keep their shares.
    AND first_due.lane = 'fresh'
