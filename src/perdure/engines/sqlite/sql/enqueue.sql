-- enqueue: makes one job, unless its id exists or its (task, unique key) is taken by a live job.
-- Parameters: as listed in the columns; state is ready or waiting by the store's now.
-- Rows: none; the count of changed rows says whether the job was made.
-- Concurrency: both conflicts are decided by unique indexes, so of two equal enqueues one makes the job.
-- Indexes: the primary key, perdure_jobs_unique.
INSERT INTO perdure_jobs (
    id,
    task,
    queue,
    state,
    lane,
    priority,
    run_at,
    delivery,
    created_at,
    unique_key,
    max_attempts,
    retry,
    timeout,
    args
)
VALUES (?, ?, ?, ?, 'fresh', ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
