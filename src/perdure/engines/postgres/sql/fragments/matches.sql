-- The condition of a JobFilter; a parameter that is null asks for nothing. The server plans each call with the values
-- given, so that what is null costs nothing and a state finds its partial index.
(:ids::text[] IS NULL OR jobs.id = ANY(:ids::text[]::uuid[]))
    AND (:state::text IS NULL OR jobs.state = :state::text)
    AND (:task::text IS NULL OR jobs.task = :task::text)
    AND (:queue::text IS NULL OR jobs.queue = :queue::text OR jobs.origin = :queue::text)
    AND (:reason::text IS NULL OR jobs.reason = :reason::text)
    AND (:schedule::text IS NULL OR jobs.schedule = :schedule::text)
    AND (:group::text IS NULL OR jobs.fingerprint = :group::text)
    AND (
        :forward::text IS NULL
        OR EXISTS (
            SELECT 1
            FROM perdure.forwards AS forward
            WHERE
                forward.job_id = jobs.id
                AND forward.state = :forward::text
        )
    )
    AND (:before::bigint IS NULL OR COALESCE(jobs.ended_at, jobs.created_at) < :before::bigint)
    AND (:after::bigint IS NULL OR COALESCE(jobs.ended_at, jobs.created_at) >= :after::bigint)
    AND (:error::text IS NULL OR STRPOS(jobs.error_words, :error::text) > 0)
