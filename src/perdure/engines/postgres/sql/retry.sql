-- retry: the states of jobs, which stay as they are until the transaction ends.
-- Parameters: ids.
-- Rows: (id, state) of each job that exists.
-- Concurrency: rows are locked in the order of ids.
-- Indexes: the primary key.
SELECT
    jobs.id::text,
    jobs.state
FROM perdure.jobs
WHERE jobs.id = ANY(:ids::text[]::uuid[])
ORDER BY jobs.id
FOR UPDATE
