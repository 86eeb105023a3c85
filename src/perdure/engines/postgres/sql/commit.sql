-- commit: writes what follows attempts whose fence matches a running attempt, and records those that did not succeed.
-- Parameters: ended (a JSON array of objects, bytes in base64, no fence twice, ordered by id), now.
-- Rows: (place) of each attempt that was accepted.
-- Concurrency: of two commits of an attempt the first finds it running; the other waits for it and finds nothing. A job
--     whose cancellation was asked for ends cancelled where it would have gone on, and keeps the reason given with the
--     request: no retry outlives a cancel.
-- Indexes: the primary key, also where the planner takes the batch for larger than it is: the ids are given to it once
--     more by themselves. A worker is present exactly while a job runs, so the fence says nothing about the state: else the
--     planner could walk through all running jobs instead.
WITH ended AS MATERIALIZED (
    SELECT
        one.*,
        /*+ now */ AS now
    FROM JSON_TO_RECORDSET(:ended::text::json) AS one (
        place integer,
        id uuid,
        attempt integer,
        worker text,
        started_at bigint,
        ended_at bigint,
        outcome text,
        state text,
        lane text,
        queue text,
        delay bigint,
        failures integer,
        recoveries integer,
        reason text,
        error text,
        error_words text,
        fingerprint text,
        result text
    )
),

accepted AS (
    UPDATE perdure.jobs
    SET
        state = CASE
-- [INV-11] No retry outlives a cancel.
            WHEN jobs.is_cancelling AND ended.state = ANY(ARRAY['waiting', 'ready']) THEN 'cancelled'
            ELSE ended.state
        END,
        ended_at = CASE WHEN jobs.is_cancelling OR ended.state <> ALL(ARRAY['waiting', 'ready']) THEN ended.now END,
        reason = CASE
            WHEN jobs.is_cancelling AND ended.state <> ALL(ARRAY['succeeded', 'dead']) THEN jobs.reason
            ELSE ended.reason
        END,
        delay = CASE WHEN NOT jobs.is_cancelling THEN ended.delay END,
        run_at = CASE
            WHEN ended.state = ANY(ARRAY['waiting', 'ready']) THEN ended.now + COALESCE(ended.delay, 0)
            ELSE jobs.run_at
        END,
        lane = ended.lane,
        origin = CASE
            WHEN ended.queue <> jobs.queue THEN COALESCE(jobs.origin, jobs.queue)
            ELSE jobs.origin
        END,
        queue = COALESCE(ended.queue, jobs.queue),
        failures = ended.failures,
        recoveries = ended.recoveries,
        error = CASE WHEN ended.state <> 'succeeded' THEN COALESCE(ended.error, jobs.error) END,
        error_words = CASE WHEN ended.state <> 'succeeded' THEN COALESCE(ended.error_words, jobs.error_words) END,
        fingerprint = ended.fingerprint,
        result = DECODE(ended.result, 'base64'),
        started_at = ended.started_at,
        attempt_ended_at = CASE WHEN ended.state = 'succeeded' THEN ended.ended_at END,
        parked_at = CASE
            WHEN ended.reason = 'parked' AND NOT jobs.is_cancelling THEN COALESCE(jobs.parked_at, ended.now)
        END,
        worker = NULL,
        is_cancelling = FALSE
    FROM ended
-- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
    WHERE
        jobs.id = ended.id
        AND jobs.id = ANY(ARRAY(SELECT ended.id FROM ended))
        AND jobs.attempt = ended.attempt
        AND jobs.worker = ended.worker
    RETURNING
        ended.place,
        ended.id,
        ended.attempt,
        ended.outcome,
        ended.state,
        ended.reason,
        ended.error,
        ended.worker,
        ended.started_at,
        ended.ended_at,
        jobs.delay
),

recorded AS (
    INSERT INTO perdure.attempts (
        job_id,
        attempt,
        outcome,
        reason,
        error,
        worker,
        started_at,
        ended_at,
        delay
    )
    SELECT
        accepted.id,
        accepted.attempt,
        accepted.outcome,
        accepted.reason,
        accepted.error,
        accepted.worker,
        accepted.started_at,
        accepted.ended_at,
        accepted.delay
    FROM accepted
    WHERE accepted.state <> 'succeeded'
)

SELECT accepted.place
FROM accepted
