-- groups: matching dead jobs by error group, largest first.
-- Parameters: those of fragments/matches.sql, limit.
-- Rows: (fingerprint, task, count, first_at, last_at, sample_id, error); the sample is the newest job of the group.
-- Concurrency: reads only.
-- Indexes: jobs_dead or, when ids are given, the primary key.
SELECT
    alike.fingerprint,
    sample.task,
    alike.count,
    alike.first_at,
    alike.last_at,
    sample.id::text,
    sample.error
FROM (
    SELECT
        jobs.fingerprint,
        COUNT(*) AS count,
        MIN(jobs.ended_at) AS first_at,
        MAX(jobs.ended_at) AS last_at,
        (ARRAY_AGG(jobs.id ORDER BY jobs.id DESC))[1] AS sample_id
    FROM perdure.jobs
    WHERE
        jobs.state = 'dead'
        AND /*+ matches */
    GROUP BY jobs.fingerprint
) AS alike
INNER JOIN perdure.jobs AS sample ON sample.id = alike.sample_id
ORDER BY alike.count DESC, alike.fingerprint
LIMIT :limit::bigint
