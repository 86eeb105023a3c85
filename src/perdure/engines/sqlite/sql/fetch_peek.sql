-- fetch: whether any of some queues has something ready, without taking the write lock.
-- Parameters: queues (a JSON array of names).
-- Rows: one (1 or 0).
-- Concurrency: a hint only; the claim itself decides.
-- Indexes: perdure_jobs_ready.
SELECT EXISTS (
    SELECT 1
    FROM JSON_EACH(:queues) AS wanted
    CROSS JOIN perdure_jobs
    WHERE
        perdure_jobs.state = 'ready'
        AND perdure_jobs.queue = wanted.value
)
