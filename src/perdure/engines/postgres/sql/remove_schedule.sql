-- remove schedule: forgets a schedule; its jobs stay.
-- Parameters: name.
-- Rows: one (name) if it was there, else none.
-- Concurrency: a step that is based on it finds nothing to change afterwards.
-- Indexes: the primary key of schedules.
DELETE FROM perdure.schedules
WHERE name = :name::text
RETURNING name
