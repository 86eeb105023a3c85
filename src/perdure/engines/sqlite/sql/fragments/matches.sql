-- The condition of a JobFilter, all but its ids; a parameter that is null asks for nothing.
(:state IS NULL OR state = :state)
    AND (:task IS NULL OR task = :task)
    AND (:queue IS NULL OR queue = :queue OR origin = :queue)
    AND (:reason IS NULL OR reason = :reason)
    AND (:schedule IS NULL OR schedule = :schedule)
    AND (:group IS NULL OR fingerprint = :group)
    AND (
        :forward IS NULL
        OR EXISTS (
            SELECT 1
            FROM perdure_forwards
            WHERE
                perdure_forwards.job_id = perdure_jobs.id
                AND perdure_forwards.state = :forward
        )
    )
    AND (:before IS NULL OR COALESCE(ended_at, created_at) < :before)
    AND (:after IS NULL OR COALESCE(ended_at, created_at) >= :after)
    AND (:error IS NULL OR perdure_error_has(error, :error))
