-- commit: writes plain successes, by far the most common ends, in one step for all of one kind.
-- Parameters: attempt, worker, the store's now, lane, failures, recoveries; rows of id, started_at, ended_at, result; no id
--     twice. What is shared is numbered, for the numbers of the rows go on from the highest before them.
-- Rows: none; the count of changed rows says how many fences matched, and unless all did it must be taken back.
-- Concurrency: runs under the write lock; of two commits of an attempt the first finds it running.
-- Indexes: the primary key, named, so that no statistics can turn the join round.
UPDATE perdure_jobs INDEXED BY sqlite_autoindex_perdure_jobs_1
SET
    state = 'succeeded',
    ended_at = ?3,
    reason = NULL,
    delay = NULL,
    error = NULL,
    fingerprint = NULL,
    result = batch.column4,
    started_at = batch.column2,
    attempt_ended_at = batch.column3,
    parked_at = NULL,
    worker = NULL,
    is_cancelling = 0,
    lane = ?4,
    failures = ?5,
    recoveries = ?6
FROM (VALUES /*+ rows */) AS batch
-- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
WHERE
    perdure_jobs.id = batch.column1
-- A job has a worker exactly while it runs. Its state is not asked for besides, and the rest is asked in the light of the
-- batch: a condition on the jobs alone would let SQLite read all of them first, to filter the batch, wherever its
-- statistics call them few.
    AND CASE WHEN batch.column1 IS NOT NULL THEN perdure_jobs.attempt = ?1 AND perdure_jobs.worker = ?2 END
