-- The room that a fetch offers a want: what it asks for, within what its queue's limit leaves over all workers.
-- [INV-17] Counted under the lock of fetch_lock.sql, so that the limit is exact over all workers.
CASE
        WHEN :concurrency::integer IS NOT NULL THEN LEAST(
            :count::bigint,
            GREATEST(
                0,
                :concurrency::integer - (
                    SELECT COUNT(*)
                    FROM perdure.jobs
                    WHERE
                        jobs.state = 'running'
                        AND jobs.queue = :queue::text
                )
            )
        )
        ELSE :count::bigint
    END
