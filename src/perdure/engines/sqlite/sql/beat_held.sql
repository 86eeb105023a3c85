-- beat: what the store believes a worker is running, in one value.
-- Parameters: worker.
-- Rows: one (a JSON array of [id, attempt]).
-- Concurrency: runs in the transaction of the beat.
-- Indexes: perdure_jobs_running.
SELECT JSON_GROUP_ARRAY(JSON_ARRAY(id, attempt))
FROM perdure_jobs
WHERE
    state = 'running'
    AND worker = :worker
