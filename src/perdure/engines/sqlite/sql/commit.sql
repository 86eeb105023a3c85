-- commit: writes what follows the attempts of the batch.
-- Parameters: now.
-- Rows: none.
-- Concurrency: the batch holds only attempts that were found running under this write lock. A job whose cancellation was
--     asked for ends cancelled where it would have gone on, and keeps the reason given with the request: no retry
--     outlives a cancel.
-- Indexes: jobs and batch by rowid.
UPDATE perdure_jobs
SET
    (
        state,
        ended_at,
        reason,
        delay,
        run_at,
        lane,
        origin,
        queue,
        failures,
        recoveries,
        error,
        fingerprint,
        result,
        started_at,
        attempt_ended_at,
        parked_at,
        worker,
        is_cancelling
    ) = (
        SELECT
            CASE
-- [INV-11] No retry outlives a cancel.
                WHEN perdure_jobs.is_cancelling = 1 AND ended.state IN ('waiting', 'ready') THEN 'cancelled'
                ELSE ended.state
            END,
            CASE WHEN perdure_jobs.is_cancelling = 1 OR ended.state NOT IN ('waiting', 'ready') THEN :now END,
            CASE
                WHEN perdure_jobs.is_cancelling = 1 AND ended.state NOT IN ('succeeded', 'dead') THEN perdure_jobs.reason
                ELSE ended.reason
            END,
            CASE WHEN perdure_jobs.is_cancelling = 0 THEN ended.delay END,
            COALESCE(ended.run_at, perdure_jobs.run_at),
            ended.lane,
            CASE
                WHEN ended.queue <> perdure_jobs.queue THEN COALESCE(perdure_jobs.origin, perdure_jobs.queue)
                ELSE perdure_jobs.origin
            END,
            COALESCE(ended.queue, perdure_jobs.queue),
            ended.failures,
            ended.recoveries,
            CASE WHEN ended.state <> 'succeeded' THEN COALESCE(ended.error, perdure_jobs.error) END,
            ended.fingerprint,
            ended.result,
            ended.started_at,
            CASE WHEN ended.state = 'succeeded' THEN ended.ended_at END,
            CASE
                WHEN ended.reason = 'parked' AND perdure_jobs.is_cancelling = 0
                    THEN COALESCE(perdure_jobs.parked_at, :now)
            END,
            NULL,
            0
        FROM temp.perdure_ended AS ended
        WHERE ended.job = perdure_jobs.rowid
    )
WHERE rowid IN (SELECT job FROM temp.perdure_ended)
