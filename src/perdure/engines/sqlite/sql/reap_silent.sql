-- reap: strikes off the workers given, each unless it has renewed its lease since.
-- Parameters: silent (a JSON array of [id, beat_at]).
-- Rows: (id) of each worker struck off.
-- Concurrency: any worker may run it; a worker is struck off once.
-- Indexes: none; the table has one row per worker.
DELETE FROM perdure_workers
WHERE (id, beat_at) IN (
    SELECT
        JSON_EXTRACT(given.value, '$[0]'),
        JSON_EXTRACT(given.value, '$[1]')
    FROM JSON_EACH(:silent) AS given
)
RETURNING id
