-- fetch: how many jobs of a queue are running, for its limit.
-- Parameters: queue.
-- Rows: one (count).
-- Concurrency: runs under the write lock of the claim, so that the limit is exact.
-- Indexes: perdure_jobs_running, all of it: what runs is few, and a claim writes no further index for a limit.
SELECT COUNT(*)
FROM perdure_jobs INDEXED BY perdure_jobs_running
WHERE
    state = 'running'
    AND queue = :queue
