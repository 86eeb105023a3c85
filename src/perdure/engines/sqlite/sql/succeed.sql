-- commit: ends running attempts, and their jobs, in success.
-- Parameters: rows of the fence (id, attempt, worker), now, started_at, attempt_ended_at, failures, recoveries, note,
--     result.
-- Rows: none; the count of changed rows says how many fences matched.
-- Concurrency: fenced by (id, attempt, worker); of two commits of an attempt the first is accepted.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    state = 'succeeded',
    ended_at = ended.now,
    started_at = ended.started_at,
    attempt_ended_at = ended.attempt_ended_at,
    failures = ended.failures,
    recoveries = ended.recoveries,
    reason = ended.note,
    result = ended.result,
    error = NULL,
    delay = NULL,
    parked_at = NULL,
    worker = NULL,
    is_cancelling = 0
FROM (
    SELECT
        column1 AS id,
        column2 AS attempt,
        column3 AS worker,
        column4 AS now,
        column5 AS started_at,
        column6 AS attempt_ended_at,
        column7 AS failures,
        column8 AS recoveries,
        column9 AS note,
        column10 AS result
    FROM (VALUES /*+ rows */)
) AS ended
-- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
WHERE
    perdure_jobs.id = ended.id
    AND perdure_jobs.attempt = ended.attempt
    AND perdure_jobs.worker = ended.worker
    AND perdure_jobs.state = 'running'
