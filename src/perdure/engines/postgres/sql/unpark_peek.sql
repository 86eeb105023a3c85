-- unpark: which of some queues have a parked job of some tasks.
-- Parameters: queues, tasks.
-- Rows: (queue) of each.
-- Concurrency: reads only; the claim itself decides.
-- Indexes: jobs_parked, once for each queue and task. An EXISTS would make the planner look through all waiting jobs.
SELECT wanted.queue
FROM UNNEST(:queues::text[]) AS wanted (queue)
WHERE (
    SELECT TRUE
    FROM UNNEST(:tasks::text[]) AS known (task)
    CROSS JOIN LATERAL (
        SELECT jobs.id
        FROM perdure.jobs
        WHERE
            jobs.state = 'waiting'
            AND jobs.reason = 'parked'
            AND jobs.queue = wanted.queue
            AND jobs.task = known.task
        LIMIT 1
    ) AS parked
    LIMIT 1
)
