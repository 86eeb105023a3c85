-- fetch: the jobs that were claimed, in one value: a row at a time would let other threads in between.
-- Parameters: rowids (a JSON array).
-- Rows: one (a JSON array of jobs in the order of the rowids, each as rows.to_claimed_job reads it: what the claim itself has
--     set is left out, and what most jobs have not stands together at the end); args that are no text come as [hex digits].
-- Concurrency: runs in the transaction of the claim.
-- Indexes: none; rows by rowid.
SELECT
    JSON_GROUP_ARRAY(
        JSON_ARRAY(
            id,
            task,
            queue,
            lane,
            CASE WHEN TYPEOF(args) = 'text' THEN args ELSE JSON_ARRAY(HEX(args)) END,
            priority,
            run_at,
            attempt,
            failures,
            recoveries,
            delivery,
            created_at,
            CASE
                WHEN
                    COALESCE(
                        origin,
                        unique_key,
                        max_attempts,
                        retry,
                        timeout,
                        delay,
                        reason,
                        error,
                        replayed_at,
                        parked_at,
                        schedule,
                        tick_at
                    ) IS NOT NULL
                    THEN
                        JSON_ARRAY(
                            origin,
                            unique_key,
                            max_attempts,
                            retry,
                            timeout,
                            delay,
                            reason,
                            error,
                            replayed_at,
                            parked_at,
                            schedule,
                            tick_at
                        )
            END
        )
    )
FROM (SELECT value AS job FROM JSON_EACH(:rowids)) AS chosen
CROSS JOIN perdure_jobs ON chosen.job = perdure_jobs.rowid
