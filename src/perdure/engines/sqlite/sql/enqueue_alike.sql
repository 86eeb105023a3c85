-- enqueue: makes jobs that differ in their ids and arguments only; none whose id exists.
-- Parameters: task, queue, state, priority, run_at, delivery, created_at, max_attempts, retry, timeout; then rows of the id and
--     the arguments.
-- Rows: none; the count of changed rows says how many jobs were made.
-- Concurrency: as enqueue.sql.
-- Indexes: the primary key.
INSERT INTO perdure_jobs (
    task,
    queue,
    state,
    priority,
    run_at,
    delivery,
    created_at,
    max_attempts,
    retry,
    timeout,
    id,
    args
)
SELECT
    ?,
    ?,
    ?,
    ?,
    ?,
    ?,
    ?,
    ?,
    ?,
    ?,
    batch.column1,
    batch.column2
FROM (VALUES /*+ rows */) AS batch
WHERE TRUE
ON CONFLICT DO NOTHING
