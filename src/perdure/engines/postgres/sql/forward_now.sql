-- forward now: makes the forwards of matching dead jobs due now, and makes one where there is none.
-- Parameters: those of fragments/matches.sql, now.
-- Rows: one (how many are due now); those that are forwarded are left out.
-- Concurrency: a job that another verb holds is waited for, and left alone if it is not dead any more.
-- Indexes: jobs_dead or, when ids are given, the primary key.
WITH dead AS MATERIALIZED (
    SELECT
        jobs.id,
        jobs.attempt,
        COALESCE(jobs.origin, jobs.queue) AS home
    FROM perdure.jobs
    WHERE
        jobs.state = 'dead'
        AND /*+ matches */
    ORDER BY jobs.id
    FOR UPDATE
),

hastened AS (
    INSERT INTO perdure.forwards AS forwards (
        job_id,
        attempt,
        queue,
        state,
        next_at
    )
    SELECT
        dead.id,
        dead.attempt,
        dead.home,
        'pending',
        /*+ now */
    FROM dead
    ON CONFLICT (job_id) DO UPDATE
    SET
        next_at = EXCLUDED.next_at,
        state = CASE WHEN forwards.state = 'stopped' THEN 'failing' ELSE forwards.state END
    WHERE forwards.state <> 'forwarded'
    RETURNING 1
)

SELECT COUNT(*)
FROM hastened
