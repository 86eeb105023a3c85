-- The columns of a schedule in the order that schedules.py reads them; the third says whether a job of it is unfinished.
perdure_schedules.document,
perdure_schedules.named_at,
EXISTS (
    SELECT 1
    FROM perdure_jobs INDEXED BY perdure_jobs_unfinished
    WHERE
        perdure_jobs.schedule = perdure_schedules.name
        AND perdure_jobs.ended_at IS NULL
),
perdure_schedules.name
