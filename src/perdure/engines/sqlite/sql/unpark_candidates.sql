-- unpark: the parked jobs of some tasks in one lane of a queue; none when it is paused.
-- Parameters: queue, lane, tasks (a JSON array of names), room, now.
-- Rows: (rowid) of each.
-- Concurrency: runs under the write lock of the claim.
-- Indexes: perdure_jobs_parked.
SELECT perdure_jobs.rowid
FROM JSON_EACH(:tasks) AS known
CROSS JOIN perdure_jobs INDEXED BY perdure_jobs_parked
WHERE
    perdure_jobs.state = 'waiting'
    AND perdure_jobs.reason = 'parked'
    AND perdure_jobs.queue = :queue
    AND perdure_jobs.task = known.value
    AND perdure_jobs.lane = :lane
-- [INV-13] A paused queue gives nothing, in either lane.
    AND NOT EXISTS (
        SELECT 1
        FROM perdure_queues
        WHERE
            name = :queue
            AND (paused_until IS NULL OR paused_until > :now)
    )
LIMIT :room
