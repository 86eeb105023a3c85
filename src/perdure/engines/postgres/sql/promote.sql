-- promote: makes waiting jobs that are due ready, the longest due first, and tells when the next one is due.
-- Parameters: now, limit, since (jobs due before this time are not looked at).
-- Rows: one (how many were made ready, the run_at of the next waiting job or null, now, the earliest run_at of those
--     made ready or null, the time up to which all were made ready, how many microseconds it took).
-- Concurrency: any worker may run it; a job that another promotes is skipped.
-- Indexes: jobs_waiting, then the primary key.
WITH promoted AS (
    UPDATE perdure.jobs
    SET state = 'ready'
    WHERE id = ANY(
        ARRAY(
            SELECT jobs.id
            FROM perdure.jobs
            WHERE
                jobs.state = 'waiting'
-- [INV-16] Nothing becomes ready before its run_at, by the store's clock.
                AND jobs.run_at <= /*+ now */
                AND jobs.run_at >= :since::bigint
            ORDER BY jobs.run_at, jobs.id
            LIMIT :limit::bigint
            FOR UPDATE SKIP LOCKED
        )
    )
    RETURNING jobs.id, jobs.run_at
)

SELECT
    (SELECT COUNT(*) FROM promoted),
    (
        SELECT jobs.run_at
        FROM perdure.jobs
        WHERE
            jobs.state = 'waiting'
            AND jobs.run_at >= :since::bigint
            AND NOT jobs.id = ANY(SELECT promoted.id FROM promoted)
        ORDER BY jobs.run_at, jobs.id
        LIMIT 1
    ),
    /*+ now */,
    (SELECT MIN(promoted.run_at) FROM promoted),
-- Jobs that others are about to commit may be due since a moment ago.
    CASE
        WHEN (SELECT COUNT(*) FROM promoted) < :limit::bigint THEN /*+ now */ - 1000000
        ELSE (SELECT MAX(promoted.run_at) FROM promoted)
    END,
    /*+ took */
