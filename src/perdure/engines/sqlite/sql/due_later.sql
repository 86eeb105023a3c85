-- due: when the first schedule is due after now; for a store whose due schedules cannot be read.
-- Parameters: now.
-- Rows: one (next_at), null when none is to come.
-- Concurrency: reads only.
-- Indexes: perdure_schedules_next.
SELECT MIN(next_at)
FROM perdure_schedules
WHERE
    next_at IS NOT NULL
    AND next_at > :now
