-- commit: records running attempts that did not succeed.
-- Parameters: rows of the fence (id, attempt, worker), outcome, reason, error, started_at, ended_at, delay.
-- Rows: none; the count of changed rows says how many fences matched.
-- Concurrency: fenced by (id, attempt, worker); runs just before commit.sql, in its transaction.
-- Indexes: the primary key.
INSERT OR IGNORE INTO perdure_attempts (
    job_id,
    attempt,
    outcome,
    reason,
    error,
    worker,
    started_at,
    ended_at,
    delay
)
SELECT
    ended.column1,
    ended.column2,
    ended.column4,
    ended.column5,
    ended.column6,
    ended.column3,
    ended.column7,
    ended.column8,
    CASE WHEN perdure_jobs.is_cancelling = 0 THEN ended.column9 END
FROM (VALUES /*+ rows */) AS ended
CROSS JOIN perdure_jobs
WHERE
    perdure_jobs.id = ended.column1
    AND perdure_jobs.attempt = ended.column2
    AND perdure_jobs.worker = ended.column3
    AND perdure_jobs.state = 'running'
