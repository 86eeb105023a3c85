-- fetch: claims ready jobs of one lane of one queue for a worker.
-- Parameters: worker, now, queue, lane, limit.
-- Rows: the jobs claimed, in no order.
-- Concurrency: runs under the write lock after the lease was checked; a job is claimed by one worker only.
-- Indexes: perdure_jobs_ready, read in order up to the limit, then rows by rowid.
UPDATE perdure_jobs
SET
    state = 'running',
    attempt = attempt + 1,
    worker = :worker,
    started_at = :now
WHERE rowid IN (
    SELECT rowid
    FROM perdure_jobs
    WHERE
        state = 'ready'
        AND queue = :queue
        AND lane = :lane
    ORDER BY priority DESC, run_at, id
    LIMIT :limit
)
RETURNING
    /*+ job_columns */
