-- The ready jobs of the ranges that fetch_ranges.sql is given, in their order, each locked when it is read; as the FROM of
-- a SELECT. One descent of jobs_ready for each range and priority, so that entries outside of the ranges are not read.
JSON_TO_RECORDSET(:ranges::text::json) AS part (
            lane text,
            high integer,
            low integer,
            early_at bigint,
            early_id uuid,
            until_at bigint,
            until_id uuid,
            late_at bigint,
            late_id uuid
        )
        CROSS JOIN LATERAL GENERATE_SERIES(part.high, part.low, -1) AS place (priority)
        CROSS JOIN LATERAL (
            SELECT early.id
            FROM (
                SELECT jobs.id
                FROM perdure.jobs
                WHERE
                    jobs.state = 'ready'
                    AND jobs.queue = :queue::text
                    AND jobs.lane = part.lane
                    AND jobs.priority = place.priority
                    AND part.early_at IS NOT NULL
                    AND (jobs.run_at, jobs.id) >= (part.early_at, part.early_id)
                    AND (jobs.run_at, jobs.id) < (part.until_at, part.until_id)
                ORDER BY jobs.run_at, jobs.id
                LIMIT :count::bigint
                FOR UPDATE SKIP LOCKED
            ) AS early
            UNION ALL
            SELECT late.id
            FROM (
                SELECT jobs.id
                FROM perdure.jobs
                WHERE
                    jobs.state = 'ready'
                    AND jobs.queue = :queue::text
                    AND jobs.lane = part.lane
                    AND jobs.priority = place.priority
                    AND (jobs.run_at, jobs.id) >= (part.late_at, part.late_id)
                ORDER BY jobs.run_at, jobs.id
                LIMIT :count::bigint
                FOR UPDATE SKIP LOCKED
            ) AS late
        ) AS found
