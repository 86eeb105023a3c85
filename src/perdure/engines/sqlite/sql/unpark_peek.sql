-- unpark: whether any of some queues has a parked job of some tasks, without taking the write lock.
-- Parameters: queues, tasks (JSON arrays of names).
-- Rows: one (1 or 0).
-- Concurrency: a hint only; the claim itself decides.
-- Indexes: perdure_jobs_parked.
SELECT EXISTS (
    SELECT 1
    FROM JSON_EACH(:queues) AS wanted
    CROSS JOIN JSON_EACH(:tasks) AS known
    CROSS JOIN perdure_jobs INDEXED BY perdure_jobs_parked
    WHERE
        perdure_jobs.state = 'waiting'
        AND perdure_jobs.reason = 'parked'
        AND perdure_jobs.queue = wanted.value
        AND perdure_jobs.task = known.value
)
