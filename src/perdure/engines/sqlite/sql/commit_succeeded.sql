-- commit: writes plain successes, by far the most common ends, in one step.
-- Parameters: rows of the fence (id, attempt, worker), started_at, ended_at, result, the store's now, lane, failures,
--     recoveries; no fence twice.
-- Rows: none; the count of changed rows says how many fences matched, and unless all did it must be taken back.
-- Concurrency: runs under the write lock; of two commits of an attempt the first finds it running.
-- Indexes: the primary key, named, so that no statistics can turn the join round.
UPDATE perdure_jobs INDEXED BY sqlite_autoindex_perdure_jobs_1
SET
    state = 'succeeded',
    ended_at = batch.column7,
    reason = NULL,
    delay = NULL,
    error = NULL,
    fingerprint = NULL,
    result = batch.column6,
    started_at = batch.column4,
    attempt_ended_at = batch.column5,
    parked_at = NULL,
    worker = NULL,
    is_cancelling = 0,
    lane = batch.column8,
    failures = batch.column9,
    recoveries = batch.column10
FROM (VALUES /*+ rows */) AS batch
-- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
WHERE
    perdure_jobs.id = batch.column1
    AND perdure_jobs.attempt = batch.column2
-- A job has a worker exactly while it runs. Its state is not asked for besides: a condition on the jobs alone would let
-- SQLite read all of them first, to filter the batch, wherever its statistics call them few.
    AND +perdure_jobs.worker = batch.column3
