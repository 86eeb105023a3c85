-- discard: dismisses matching dead jobs, oldest first; they end cancelled and are pruned like those.
-- Parameters: those of fragments/matches.sql, limit, now.
-- Rows: one (how many were dismissed).
-- Concurrency: a job that another verb holds is waited for, and left alone if it is not dead any more.
--     Whatever was to be forwarded of them is so no more.
-- Indexes: jobs_dead or, when ids are given, the primary key.
WITH dismissed AS (
    UPDATE perdure.jobs
    SET
        state = 'cancelled',
        reason = 'discarded',
        ended_at = /*+ now */
    WHERE id = ANY(
        ARRAY(
            SELECT jobs.id
            FROM perdure.jobs
            WHERE
                jobs.state = 'dead'
                AND /*+ matches */
            ORDER BY jobs.id
            LIMIT :limit::bigint
            FOR UPDATE
        )
    )
    RETURNING jobs.id
),

forgotten AS (
    DELETE FROM perdure.forwards
    WHERE forwards.job_id = ANY(ARRAY(SELECT dismissed.id FROM dismissed))
)

SELECT COUNT(*)
FROM dismissed
