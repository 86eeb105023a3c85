-- commit: ends running attempts that all succeeded, are of the same number and were run by the same worker.
-- Parameters: ids (in ascending order), started_at and ended_at (one for each id), results (one for each id, or none),
--     result (where there are no results: that of all), worker, attempt, failures, recoveries, lane, now.
-- Rows: one (null when all were accepted; else the places among the ids, from 1, of those that were): nearly always all
--     are, and a row for each would be sent and read in vain.
-- Concurrency: as in commit.sql. A job whose cancellation was asked for, but which succeeded, has succeeded.
-- Indexes: the primary key, and nothing else: there is no join whose plan could go wrong, and the ids are taken out of
--     their array so that the planner does not count them: for very many of them it would rather read the whole table. What
--     belongs to a job is found by the place of its id in the order of ids.
WITH done AS (
    UPDATE perdure.jobs
    SET
        state = 'succeeded',
        ended_at = /*+ now */,
        reason = NULL,
        delay = NULL,
        lane = :lane::text,
        failures = :failures::integer,
        recoveries = :recoveries::integer,
        error = NULL,
        error_words = NULL,
        fingerprint = NULL,
        result = CASE
            WHEN CARDINALITY(:results::bytea[]) = 0 THEN :result::bytea
            ELSE (:results::bytea[])[WIDTH_BUCKET(jobs.id, :ids::uuid[])]
        END,
        started_at = (:started_at::bigint[])[WIDTH_BUCKET(jobs.id, :ids::uuid[])],
        attempt_ended_at = (:ended_at::bigint[])[WIDTH_BUCKET(jobs.id, :ids::uuid[])],
        parked_at = NULL,
        worker = NULL,
        is_cancelling = FALSE
-- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
    WHERE
        jobs.id = ANY(ARRAY(SELECT UNNEST(:ids::uuid[])))
        AND jobs.attempt = :attempt::integer
        AND jobs.worker = :worker::text
    RETURNING jobs.id
)

SELECT
    CASE
        WHEN (SELECT COUNT(*) FROM done) < CARDINALITY(:ids::uuid[])
            THEN ARRAY(SELECT WIDTH_BUCKET(done.id, :ids::uuid[]) FROM done)
    END
