-- replay, retry: puts dead or cancelled jobs back into the queues that they came from, failures starting again at 0.
-- Parameters: ids (in the order of coming due), every (between one and the next), done (how many were put back before),
--     now.
-- Rows: (id) of each job that was put back. One is not when a live job, or an earlier one of these, holds its unique key.
-- Concurrency: the unique index decides between equal keys: where another takes one meanwhile the statement fails as a
--     whole, and is to be tried again. The last error stays visible until the next ending.
--     Whatever was to be forwarded of them is so no more.
-- Indexes: the primary keys, jobs_unique.
WITH free AS MATERIALIZED (
    SELECT
        jobs.id,
        asked.place,
        /*+ now */ AS now,
        jobs.unique_key IS NULL
        OR ROW_NUMBER() OVER (PARTITION BY jobs.task, jobs.unique_key ORDER BY asked.place) = 1 AS is_first
    FROM UNNEST(:ids::text[]::uuid[]) WITH ORDINALITY AS asked (id, place)
    INNER JOIN perdure.jobs ON jobs.id = asked.id
    WHERE
        jobs.state = ANY(ARRAY['dead', 'cancelled'])
        AND (
            jobs.unique_key IS NULL
            OR NOT EXISTS (
                SELECT 1
                FROM perdure.jobs AS other
                WHERE
                    other.task = jobs.task
                    AND other.unique_key = jobs.unique_key
                    AND other.unique_key IS NOT NULL
                    AND other.ended_at IS NULL
            )
        )
),

turn AS MATERIALIZED (
    SELECT
        free.id,
        free.now,
        free.now + ((:done::bigint + ROW_NUMBER() OVER (ORDER BY free.place) - 1) * :every::bigint) AS run_at
    FROM free
    WHERE free.is_first
),

back AS (
    UPDATE perdure.jobs
    SET
        state = CASE WHEN turn.run_at <= turn.now THEN 'ready' ELSE 'waiting' END,
        run_at = turn.run_at,
        queue = COALESCE(jobs.origin, jobs.queue),
        origin = NULL,
        lane = CASE WHEN jobs.attempt > 0 THEN 'retry' ELSE 'fresh' END,
        failures = 0,
        recoveries = 0,
        reason = NULL,
        fingerprint = NULL,
        delay = NULL,
        replayed_at = turn.run_at,
        parked_at = NULL,
        ended_at = NULL
    FROM turn
    WHERE
        jobs.id = turn.id
        AND jobs.state = ANY(ARRAY['dead', 'cancelled'])
    RETURNING jobs.id
),

forgotten AS (
    DELETE FROM perdure.forwards
    WHERE forwards.job_id = ANY(ARRAY(SELECT back.id FROM back))
)

SELECT back.id::text
FROM back
