-- replay, retry: puts a dead or cancelled job back into the queue that it came from, failures starting again at 0.
-- Parameters: id, state and run_at it gets.
-- Rows: none; the count of changed rows says whether it was put back. It is not when a live job holds its unique key.
-- Concurrency: the unique index decides between equal keys. The last error stays visible until the next ending.
-- Indexes: the primary key, perdure_jobs_unique.
UPDATE OR IGNORE perdure_jobs
SET
    state = :state,
    run_at = :run_at,
    queue = COALESCE(origin, queue),
    origin = NULL,
    lane = CASE WHEN attempt > 0 THEN 'retry' ELSE 'fresh' END,
    failures = 0,
    recoveries = 0,
    reason = NULL,
    fingerprint = NULL,
    delay = NULL,
    replayed_at = :run_at,
    parked_at = NULL,
    ended_at = NULL
WHERE
    id = :id
    AND state IN ('dead', 'cancelled')
