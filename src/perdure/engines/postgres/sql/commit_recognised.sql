-- commit: which attempts that were not accepted had been committed before, in the same way by the same worker.
-- Parameters: ended (a JSON array of objects with place, id, attempt, worker, outcome and ended_at).
-- Rows: (place) of each attempt that is recognised.
-- Concurrency: reads only. An attempt belongs to one worker, and nobody else can have made it a success.
-- Indexes: the primary keys.
SELECT ended.place
FROM JSON_TO_RECORDSET(:ended::text::json) AS ended (
    place integer,
    id uuid,
    attempt integer,
    worker text,
    outcome text,
    ended_at bigint
)
WHERE
    CASE
        WHEN ended.outcome = 'succeeded' THEN EXISTS (
            SELECT 1
            FROM perdure.jobs
            WHERE
                jobs.id = ended.id
                AND jobs.attempt = ended.attempt
                AND jobs.state = 'succeeded'
        )
        ELSE EXISTS (
            SELECT 1
            FROM perdure.attempts
            WHERE
                attempts.job_id = ended.id
                AND attempts.attempt = ended.attempt
                AND attempts.worker = ended.worker
                AND attempts.outcome = ended.outcome
                AND attempts.ended_at = ended.ended_at
        )
    END
