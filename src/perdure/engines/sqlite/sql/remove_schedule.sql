-- remove schedule: forgets a schedule; its jobs stay.
-- Parameters: name.
-- Rows: none; the count of changed rows says whether it was there.
-- Concurrency: a step that is based on it finds nothing to change afterwards.
-- Indexes: the primary key of perdure_schedules.
DELETE FROM perdure_schedules
WHERE name = :name
