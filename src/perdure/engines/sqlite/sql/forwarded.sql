-- forwarded: writes what a try came to.
-- Parameters: job_id, attempt, number (of the try), sink, state, next_at, error, now.
-- Rows: none; the count of changed rows says whether it was accepted.
-- Concurrency: runs under the write lock. A success is accepted from any try of this death, a failure from the newest
--     only, and never after a success.
-- Indexes: the primary key.
UPDATE perdure_forwards
SET
    state = :state,
    next_at = :next_at,
    error = :error,
    sink = COALESCE(:sink, sink),
    forwarded_at = CASE WHEN :state = 'forwarded' THEN COALESCE(forwarded_at, :now) END
WHERE
    job_id = :job_id
    AND attempt = :attempt
-- [INV-22] What the sink has accepted is forwarded; what it has not stays due.
    AND (:state = 'forwarded' OR (tries = :number AND state <> 'forwarded'))
