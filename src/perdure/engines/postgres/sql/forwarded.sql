-- forwarded: writes what tries came to.
-- Parameters: tried (a JSON array of objects, no job twice), now.
-- Rows: (place) of each try that was accepted.
-- Concurrency: a success is accepted from any try of this death, a failure from the newest only, and never after a
--     success; of two at once the second waits for the first and looks again.
-- Indexes: the primary key.
UPDATE perdure.forwards
SET
    state = tried.state,
    next_at = CASE WHEN tried.state = 'failing' THEN /*+ now */ + tried.delay END,
    error = tried.error,
    sink = COALESCE(tried.sink, forwards.sink),
    forwarded_at = CASE WHEN tried.state = 'forwarded' THEN COALESCE(forwards.forwarded_at, /*+ now */) END
FROM JSON_TO_RECORDSET(:tried::text::json) AS tried (
    place integer,
    job_id uuid,
    attempt integer,
    number integer,
    sink text,
    state text,
    delay bigint,
    error text
)
WHERE
    forwards.job_id = tried.job_id
    AND forwards.attempt = tried.attempt
-- [INV-22] What the sink has accepted is forwarded; what it has not stays due.
    AND (tried.state = 'forwarded' OR (forwards.tries = tried.number AND forwards.state <> 'forwarded'))
RETURNING tried.place
