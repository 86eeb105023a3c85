-- enqueue: makes jobs, but none whose id or tick exists or whose (task, unique key) is taken by a live job.
-- Parameters: rows of the columns; state is ready or waiting by the store's now.
-- Rows: none; the count of changed rows says how many jobs were made.
-- Concurrency: all conflicts are decided by unique indexes, so of two equal enqueues one makes the job.
-- Indexes: the primary key, perdure_jobs_unique, perdure_jobs_tick.
INSERT INTO perdure_jobs (
    id,
    task,
    queue,
    state,
    priority,
    run_at,
    delivery,
    created_at,
    unique_key,
    max_attempts,
    retry,
    timeout,
    args,
    schedule,
    tick_at
)
VALUES /*+ rows */
ON CONFLICT DO NOTHING
