-- How many retries a fetch may claim within the cap on those that run; with no cap as many as any fetch asks for.
-- [INV-10] Counted under the lock of fetch_lock.sql, so that the cap is exact over all workers.
CASE
            WHEN :max_retries_running::integer IS NOT NULL THEN GREATEST(
                0,
                :max_retries_running::integer - (
                    SELECT COUNT(*)
                    FROM perdure.jobs
                    WHERE
                        jobs.state = 'running'
                        AND jobs.lane = 'retry'
                        AND jobs.queue = :queue::text
                )
            )
            ELSE :count::bigint
        END
