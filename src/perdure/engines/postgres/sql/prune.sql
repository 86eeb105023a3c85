-- prune: deletes succeeded and cancelled jobs that ended long ago, oldest first, with their history; never dead or live
--     ones.
-- Parameters: now, age, limit, since (jobs that ended before this time are not looked at).
-- Rows: one (how many jobs were deleted, when the last of them ended or null, how many microseconds it took).
-- Concurrency: any worker may run it; a job that another prunes is skipped.
--     A forward that was made just as its job was dismissed goes with it.
-- Indexes: jobs_ended, then the primary keys.
WITH pruned AS (
    DELETE FROM perdure.jobs
-- [INV-14] Never dead or live jobs.
    WHERE id = ANY(
        ARRAY(
            SELECT jobs.id
            FROM perdure.jobs
            WHERE
                jobs.state = ANY(ARRAY['succeeded', 'cancelled'])
                AND jobs.ended_at <= (/*+ now */ - :age::bigint)
                AND jobs.ended_at >= :since::bigint
            ORDER BY jobs.ended_at
            LIMIT :limit::bigint
            FOR UPDATE SKIP LOCKED
        )
    )
    RETURNING jobs.id, jobs.ended_at
),

forgotten AS (
    DELETE FROM perdure.attempts
    WHERE job_id = ANY(ARRAY(SELECT pruned.id FROM pruned))
),

unforwarded AS (
    DELETE FROM perdure.forwards
    WHERE job_id = ANY(ARRAY(SELECT pruned.id FROM pruned))
)

SELECT
    COUNT(*),
    MAX(pruned.ended_at),
    /*+ took */
FROM pruned
