-- commit: records the attempts of the batch that did not succeed.
-- Parameters: none.
-- Rows: none.
-- Concurrency: runs just before commit.sql, in its transaction. No delay follows where a cancel was asked for.
-- Indexes: jobs by rowid.
INSERT INTO perdure_attempts (
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
    ended.id,
    ended.attempt,
    ended.outcome,
    ended.reason,
    ended.error,
    ended.worker,
    ended.started_at,
    ended.ended_at,
    CASE
        WHEN (SELECT is_cancelling FROM perdure_jobs WHERE rowid = ended.job) = 0 THEN ended.delay
    END
FROM temp.perdure_ended AS ended
WHERE ended.state <> 'succeeded'
