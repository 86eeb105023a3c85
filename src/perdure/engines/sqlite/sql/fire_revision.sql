-- fire: the revision that a schedule has now.
-- Parameters: name.
-- Rows: one (revision) if the schedule exists, else none.
-- Concurrency: runs in the transaction of the step, or before it to see whether it is worth a write lock.
-- Indexes: the primary key of perdure_schedules.
SELECT revision
FROM perdure_schedules
WHERE name = :name
