-- The columns of a schedule in the order that schedules.py reads them; the third says whether a job of it is unfinished.
schedules.document,
    schedules.named_at,
    (
        SELECT jobs.id
        FROM perdure.jobs
        WHERE
            jobs.schedule = schedules.name
            AND jobs.ended_at IS NULL
        LIMIT 1
    ) IS NOT NULL,
    schedules.name
