-- commit: marks jobs that have just died as due to their sinks.
-- Parameters: due (a JSON array of objects), now.
-- Rows: none.
-- Concurrency: runs in the transaction of commit.sql, which holds the rows: a job is dead and due, or neither.
-- Indexes: the primary keys.
INSERT INTO perdure.forwards (
    job_id,
    attempt,
    queue,
    sink,
    state,
    next_at
)
SELECT
    jobs.id,
    jobs.attempt,
    COALESCE(jobs.origin, jobs.queue),
    due.sink,
    'pending',
    /*+ now */
FROM JSON_TO_RECORDSET(:due::text::json) AS due (id uuid, sink text)
INNER JOIN perdure.jobs ON jobs.id = due.id
WHERE jobs.state = 'dead'
ON CONFLICT (job_id) DO UPDATE
SET
    attempt = EXCLUDED.attempt,
    queue = EXCLUDED.queue,
    sink = EXCLUDED.sink,
    state = EXCLUDED.state,
    next_at = EXCLUDED.next_at,
    tries = 0,
    tried_at = NULL,
    forwarded_at = NULL,
    error = NULL
