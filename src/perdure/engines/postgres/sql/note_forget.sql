-- note: deletes a few notes whose time is over, the longest expired first.
-- Parameters: limit, now.
-- Rows: none.
-- Concurrency: leaves out what others delete or renew just now.
-- Indexes: notes_expiring.
DELETE FROM perdure.notes
USING (
    SELECT
        kind,
        key
    FROM perdure.notes
    WHERE expires_at <= /*+ now */
    ORDER BY expires_at
    LIMIT :limit::bigint
    FOR UPDATE SKIP LOCKED
) AS expired
WHERE
    notes.kind = expired.kind
    AND notes.key = expired.key
