-- promote: makes waiting jobs that are due ready, the longest due first.
-- Parameters: now, limit.
-- Rows: none; the count of changed rows says how many.
-- Concurrency: any worker may run it; a job is promoted once.
-- Indexes: perdure_jobs_waiting, then rows by rowid.
UPDATE perdure_jobs
SET state = 'ready'
WHERE rowid IN (
    SELECT rowid
    FROM perdure_jobs
    WHERE
        state = 'waiting'
-- [INV-16] Nothing becomes ready before its run_at, by the store's clock.
        AND run_at <= :now
    ORDER BY run_at
    LIMIT :limit
)
