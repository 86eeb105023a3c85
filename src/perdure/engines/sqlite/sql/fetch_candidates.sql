-- fetch: the first ready jobs of each lane of a queue; none when it is paused.
-- Parameters: queue, room (how many of each lane at most), max_retries_running (null: no cap), now.
-- Rows: one (rowids of fresh jobs, rowids of retry jobs), each a JSON array in the order of claiming.
-- Concurrency: runs under the write lock of the claim, so that pause and cap are exact.
-- Indexes: perdure_jobs_ready, read in order up to the limit; perdure_jobs_retrying for the cap.
SELECT
    (
        SELECT JSON_GROUP_ARRAY(next_fresh.job)
        FROM (
            SELECT rowid AS job
            FROM perdure_jobs
            WHERE
                state = 'ready'
                AND queue = :queue
                AND lane = 'fresh'
-- [INV-13] A paused queue gives nothing, in either lane.
                AND NOT EXISTS (
                    SELECT 1
                    FROM perdure_queues
                    WHERE
                        name = :queue
                        AND (paused_until IS NULL OR paused_until > :now)
                )
            ORDER BY priority DESC, run_at, id
            LIMIT :room
        ) AS next_fresh
    ),
    (
        SELECT JSON_GROUP_ARRAY(next_retry.job)
        FROM (
            SELECT rowid AS job
            FROM perdure_jobs
            WHERE
                state = 'ready'
                AND queue = :queue
                AND lane = 'retry'
                AND NOT EXISTS (
                    SELECT 1
                    FROM perdure_queues
                    WHERE
                        name = :queue
                        AND (paused_until IS NULL OR paused_until > :now)
                )
            ORDER BY priority DESC, run_at, id
            LIMIT
                CASE
-- [INV-10] Counted under the write lock of the claim, so that the cap is exact over all workers.
                    WHEN :max_retries_running IS NULL THEN :room
                    ELSE MIN(
                        :room,
                        MAX(
                            0,
                            :max_retries_running - (
                                SELECT COUNT(*)
                                FROM perdure_jobs
                                WHERE
                                    state = 'running'
                                    AND lane = 'retry'
                                    AND queue = :queue
                            )
                        )
                    )
                END
        ) AS next_retry
    )
