-- enqueue: the id that stands for a job that was not made.
-- Parameters: id, task, unique_key.
-- Rows: one (id): the job of that id if it exists, else the live job that holds the unique key.
-- Concurrency: runs in the transaction of the insert that changed nothing.
-- Indexes: the primary key, perdure_jobs_unique.
SELECT id
FROM perdure_jobs
WHERE id = :id
UNION ALL
SELECT id
FROM perdure_jobs
WHERE
    task = :task
    AND unique_key = :unique_key
    AND unique_key IS NOT NULL
    AND ended_at IS NULL
LIMIT 1
