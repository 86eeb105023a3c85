-- commit: writes what follows an attempt that did not succeed.
-- Parameters: state, lane, queue, run_at, failures, recoveries, reason, error, delay, fingerprint, started_at, result, now;
--     the fence id, attempt, worker.
-- Rows: none; the count of changed rows says whether the fence matched.
-- Concurrency: fenced by (id, attempt, worker). A job whose cancellation was asked for ends cancelled where it would
--     have gone on, and keeps the reason given with the request: no retry outlives a cancel.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    state = CASE WHEN is_cancelling = 1 AND :state IN ('waiting', 'ready') THEN 'cancelled' ELSE :state END,
    ended_at = CASE WHEN is_cancelling = 0 AND :state IN ('waiting', 'ready') THEN NULL ELSE :now END,
    reason = CASE WHEN is_cancelling = 1 AND :state <> 'dead' THEN reason ELSE :reason END,
    delay = CASE WHEN is_cancelling = 0 THEN :delay END,
    run_at = COALESCE(:run_at, run_at),
    lane = :lane,
    origin = CASE WHEN :queue IS NULL OR :queue = queue THEN origin ELSE COALESCE(origin, queue) END,
    queue = COALESCE(:queue, queue),
    failures = :failures,
    recoveries = :recoveries,
    error = COALESCE(:error, error),
    fingerprint = :fingerprint,
    result = :result,
    started_at = :started_at,
    worker = NULL,
    is_cancelling = 0
WHERE
    id = :id
    AND attempt = :attempt
    AND worker = :worker
    AND state = 'running'
