-- enqueue: the ids that stand for jobs that were not made.
-- Parameters: jobs (a JSON array of objects with place, id, task and unique_key).
-- Rows: (place, id): the job of that id if it exists, else the live job that holds the unique key; none when its holder
--     has ended meanwhile.
-- Concurrency: runs after the insert that changed nothing, so that it sees what stood in its way.
-- Indexes: the primary key, jobs_unique.
SELECT
    asked.place,
    COALESCE(
        (
            SELECT jobs.id
            FROM perdure.jobs
            WHERE jobs.id = asked.id
        ),
        (
            SELECT jobs.id
            FROM perdure.jobs
            WHERE
                jobs.task = asked.task
                AND jobs.unique_key = asked.unique_key
                AND jobs.unique_key IS NOT NULL
                AND jobs.ended_at IS NULL
        )
    )::text
FROM JSON_TO_RECORDSET(:jobs::text::json) AS asked (place integer, id uuid, task text, unique_key text)
