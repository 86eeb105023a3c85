-- name schedules: notes that a living worker names some schedules in its code.
-- Parameters: names (a JSON array), now.
-- Rows: none.
-- Concurrency: changes no revision, so that it is in nobody's way.
-- Indexes: the primary key of perdure_schedules.
UPDATE perdure_schedules
SET named_at = :now
WHERE name IN (SELECT value FROM JSON_EACH(:names))
