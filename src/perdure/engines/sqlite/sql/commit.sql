-- commit: writes what follows attempts that did not succeed.
-- Parameters: rows of the fence (id, attempt, worker), now, state, lane, queue, run_at, delay, failures, recoveries,
--     reason, error, fingerprint, started_at.
-- Rows: none; the count of changed rows says how many fences matched.
-- Concurrency: fenced by (id, attempt, worker). A job whose cancellation was asked for ends cancelled where it would
--     have gone on, and keeps the reason given with the request: no retry outlives a cancel.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    state = CASE
-- [INV-11] No retry outlives a cancel.
        WHEN is_cancelling = 1 AND ended.state IN ('waiting', 'ready') THEN 'cancelled'
        ELSE ended.state
    END,
    ended_at = CASE WHEN is_cancelling = 1 OR ended.state NOT IN ('waiting', 'ready') THEN ended.now END,
    reason = CASE
        WHEN is_cancelling = 1 AND ended.state <> 'dead' THEN perdure_jobs.reason
        ELSE ended.reason
    END,
    delay = CASE WHEN is_cancelling = 0 THEN ended.delay END,
    run_at = COALESCE(ended.run_at, perdure_jobs.run_at),
    lane = ended.lane,
    origin = CASE
        WHEN ended.queue <> perdure_jobs.queue THEN COALESCE(perdure_jobs.origin, perdure_jobs.queue)
        ELSE perdure_jobs.origin
    END,
    queue = COALESCE(ended.queue, perdure_jobs.queue),
    failures = ended.failures,
    recoveries = ended.recoveries,
    error = COALESCE(ended.error, perdure_jobs.error),
    fingerprint = ended.fingerprint,
    started_at = ended.started_at,
    parked_at = CASE
        WHEN ended.reason = 'parked' AND is_cancelling = 0 THEN COALESCE(perdure_jobs.parked_at, ended.now)
    END,
    worker = NULL,
    is_cancelling = 0
FROM (
    SELECT
        column1 AS id,
        column2 AS attempt,
        column3 AS worker,
        column4 AS now,
        column5 AS state,
        column6 AS lane,
        column7 AS queue,
        column8 AS run_at,
        column9 AS delay,
        column10 AS failures,
        column11 AS recoveries,
        column12 AS reason,
        column13 AS error,
        column14 AS fingerprint,
        column15 AS started_at
    FROM (VALUES /*+ rows */)
) AS ended
-- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
WHERE
    perdure_jobs.id = ended.id
    AND perdure_jobs.attempt = ended.attempt
    AND perdure_jobs.worker = ended.worker
    AND perdure_jobs.state = 'running'
