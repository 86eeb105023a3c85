-- promote: makes waiting jobs that are due ready, the longest due first, and tells when the next one is due.
-- Parameters: now, limit.
-- Rows: one (how many were made ready, the run_at of the next waiting job or null, now).
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
            ORDER BY jobs.run_at, jobs.id
            LIMIT :limit::bigint
            FOR UPDATE SKIP LOCKED
        )
    )
    RETURNING jobs.id
)

SELECT
    (SELECT COUNT(*) FROM promoted),
    (
        SELECT jobs.run_at
        FROM perdure.jobs
        WHERE
            jobs.state = 'waiting'
            AND NOT jobs.id = ANY(SELECT promoted.id FROM promoted)
        ORDER BY jobs.run_at, jobs.id
        LIMIT 1
    ),
    /*+ now */
