-- start: records that the worker is about to enter the handlers of these attempts.
-- Parameters: worker, ids, attempts (one for each id), now.
-- Rows: (id) of each attempt that may be entered.
-- Concurrency: the worker's row is locked against deletion, so a reaper either strikes the worker off before, and then
--     nothing may be entered, or finds the job afterwards and sees that it was entered.
-- Indexes: the primary keys of workers and jobs.
WITH living AS MATERIALIZED (
    SELECT workers.id
    FROM perdure.workers
    WHERE workers.id = :worker::text
    FOR KEY SHARE
)

UPDATE perdure.jobs
SET started_at = /*+ now */
FROM ROWS FROM (UNNEST(:ids::uuid[]), UNNEST(:attempts::integer[])) AS given (id, attempt)
WHERE
    jobs.id = given.id
-- [INV-3] Only the current attempt may start, in the worker that claimed it.
    AND jobs.state = 'running'
    AND jobs.worker = (SELECT living.id FROM living)
    AND jobs.attempt = given.attempt
RETURNING jobs.id::text
