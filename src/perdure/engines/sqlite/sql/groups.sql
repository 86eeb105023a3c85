-- groups: matching dead jobs by error group, largest first.
-- Parameters: those of fragments/matches.sql, ids, limit.
-- Rows: (fingerprint, task, count, first_at, last_at, sample_id, error); the sample is the newest job of the group.
-- Concurrency: reads only.
-- Indexes: perdure_jobs_dead or, when ids are given, the primary key.
SELECT
    alike.fingerprint,
    sample.task,
    alike.count,
    alike.first_at,
    alike.last_at,
    sample.id,
    sample.error
FROM (
    SELECT
        fingerprint,
        COUNT(*) AS count,
        MIN(ended_at) AS first_at,
        MAX(ended_at) AS last_at,
        MAX(id) AS sample_id
    FROM perdure_jobs
    WHERE
        state = 'dead'
        AND /*+ among */
        AND /*+ matches */
    GROUP BY fingerprint
) AS alike
INNER JOIN perdure_jobs AS sample ON sample.id = alike.sample_id
ORDER BY alike.count DESC, alike.fingerprint
LIMIT :limit
