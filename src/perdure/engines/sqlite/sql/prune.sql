-- prune: deletes succeeded and cancelled jobs that ended long ago, oldest first; never dead or live ones.
-- Parameters: ended_before, limit.
-- Rows: (id) of each job deleted.
-- Concurrency: any worker may run it.
-- Indexes: perdure_jobs_ended, then rows by rowid.
DELETE FROM perdure_jobs
-- [INV-14] Never dead or live jobs.
WHERE rowid IN (
    SELECT rowid
    FROM perdure_jobs
    WHERE
        (state = 'succeeded' OR state = 'cancelled')
        AND ended_at <= :ended_before
    ORDER BY ended_at
    LIMIT :limit
)
RETURNING id
