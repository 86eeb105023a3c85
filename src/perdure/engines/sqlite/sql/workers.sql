-- workers: every registered worker, oldest first.
-- Parameters: none.
-- Rows: (id, host, pid, queues, concurrency, version, started_at, beat_at, lease_until, running).
-- Concurrency: reads only.
-- Indexes: perdure_jobs_running for the count.
SELECT
    id,
    host,
    pid,
    queues,
    concurrency,
    version,
    started_at,
    beat_at,
    lease_until,
    (
        SELECT COUNT(*)
        FROM perdure_jobs
        WHERE
            perdure_jobs.state = 'running'
            AND perdure_jobs.worker = perdure_workers.id
    )
FROM perdure_workers
ORDER BY started_at, id
