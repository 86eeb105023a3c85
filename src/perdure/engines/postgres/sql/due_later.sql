-- due: when the first schedule is due after now; for a store whose due schedules cannot be read.
-- Parameters: now.
-- Rows: one (next_at), null when none is to come.
-- Concurrency: reads only.
-- Indexes: schedules_next.
SELECT MIN(schedules.next_at)
FROM perdure.schedules
WHERE
    schedules.next_at IS NOT NULL
    AND schedules.next_at > /*+ now */
