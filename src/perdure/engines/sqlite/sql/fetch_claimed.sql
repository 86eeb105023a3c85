-- fetch: the jobs that were claimed, in one value: a row at a time would let other threads in between.
-- Parameters: rowids (a JSON array).
-- Rows: one (in the order of the rowids, a JSON array of the columns of fragments/job_columns.sql); args that are no text come as [hex digits].
-- Concurrency: runs in the transaction of the claim.
-- Indexes: none; rows by rowid.
SELECT
    JSON_GROUP_ARRAY(
        JSON_ARRAY(
            id,
            task,
            queue,
            state,
            lane,
            CASE WHEN TYPEOF(args) = 'text' THEN args ELSE JSON_ARRAY(HEX(args)) END,
            priority,
            run_at,
            attempt,
            failures,
            recoveries,
            delivery,
            created_at,
            origin,
            unique_key,
            max_attempts,
            retry,
            timeout,
            delay,
            reason,
            error,
            NULL,
            worker,
            started_at,
            ended_at,
            replayed_at,
            parked_at,
            is_cancelling,
            schedule,
            tick_at
        )
    )
FROM (SELECT value AS job FROM JSON_EACH(:rowids)) AS chosen
CROSS JOIN perdure_jobs ON chosen.job = perdure_jobs.rowid
