-- commit: marks a job that has just died as due to its sink.
-- Parameters: id, sink, now.
-- Rows: none.
-- Concurrency: runs just after commit.sql, in its transaction: a job is dead and due, or neither.
-- Indexes: the primary keys.
INSERT OR REPLACE INTO perdure_forwards (
    job_id,
    attempt,
    queue,
    sink,
    state,
    next_at
)
SELECT
    id,
    attempt,
    COALESCE(origin, queue),
    :sink,
    'pending',
    :now
FROM perdure_jobs
WHERE
    id = :id
    AND state = 'dead'
