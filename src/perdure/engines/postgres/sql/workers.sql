-- workers: every registered worker, oldest first.
-- Parameters: none.
-- Rows: (id, host, pid, queues, concurrency, version, started_at, beat_at, lease_until, running).
-- Concurrency: reads only.
-- Indexes: jobs_running for the count.
SELECT
    workers.id,
    workers.host,
    workers.pid,
    workers.queues,
    workers.concurrency,
    workers.version,
    workers.started_at,
    workers.beat_at,
    workers.lease_until,
    (
        SELECT COUNT(*)
        FROM perdure.jobs
        WHERE
            jobs.state = 'running'
            AND jobs.worker = workers.id
    )
FROM perdure.workers
ORDER BY workers.started_at, workers.id
