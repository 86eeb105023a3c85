-- name schedules: notes that a living worker names some schedules in its code.
-- Parameters: names, now.
-- Rows: none.
-- Concurrency: changes no revision; a schedule that is being changed is left to the next time, so that nobody waits.
-- Indexes: the primary key of schedules.
UPDATE perdure.schedules
SET named_at = /*+ now */
WHERE name = ANY(
    ARRAY(
        SELECT schedules.name
        FROM perdure.schedules
        WHERE schedules.name = ANY(:names::text[])
        ORDER BY schedules.name
        FOR UPDATE SKIP LOCKED
    )
)
