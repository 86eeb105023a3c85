-- commit: lays out the attempts whose fence matches a running attempt.
-- Parameters: rows of the place in the batch, the fence (id, attempt, worker), started_at, ended_at, outcome, state, lane,
--     queue, run_at, delay, failures, recoveries, reason, error, fingerprint, result; no fence twice.
-- Rows: none.
-- Concurrency: runs under the write lock; of two commits of an attempt the first finds it running.
-- Indexes: the primary key.
INSERT INTO temp.perdure_ended (
    job,
    place,
    id,
    attempt,
    worker,
    started_at,
    ended_at,
    outcome,
    state,
    lane,
    queue,
    run_at,
    delay,
    failures,
    recoveries,
    reason,
    error,
    fingerprint,
    result
)
SELECT
    fence.job,
    fence.column1,
    fence.column2,
    fence.column3,
    fence.column4,
    fence.column5,
    fence.column6,
    fence.column7,
    fence.column8,
    fence.column9,
    fence.column10,
    fence.column11,
    fence.column12,
    fence.column13,
    fence.column14,
    fence.column15,
    fence.column16,
    fence.column17,
    fence.column18
FROM (
    SELECT
        batch.*,
        (
            SELECT perdure_jobs.rowid
            FROM perdure_jobs
-- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
            WHERE
                perdure_jobs.id = batch.column2
                AND perdure_jobs.attempt = batch.column3
                AND +perdure_jobs.worker = batch.column4
                AND +perdure_jobs.state = 'running'
        ) AS job
    FROM (VALUES /*+ rows */) AS batch
) AS fence
WHERE fence.job IS NOT NULL
