-- start: records that the worker is about to enter the handlers of these attempts.
-- Parameters: attempts (a JSON array of [id, attempt]), worker, now.
-- Rows: (id) of each attempt that may be entered.
-- Concurrency: runs under the write lock; fetch_lease.sql has checked the lease in the same transaction, so a reaper that
--     finds the job afterwards sees that it was entered.
-- Indexes: the primary key of perdure_jobs.
UPDATE perdure_jobs
SET started_at = :now
WHERE
    rowid IN (
        SELECT jobs.rowid
        FROM JSON_EACH(:attempts) AS given
        CROSS JOIN perdure_jobs AS jobs ON JSON_EXTRACT(given.value, '$[0]') = jobs.id
        WHERE
-- [INV-3] Only the current attempt may start, in the worker that claimed it.
            jobs.state = 'running'
            AND jobs.worker = :worker
            AND jobs.attempt = JSON_EXTRACT(given.value, '$[1]')
    )
RETURNING id
