-- note: makes a note, unless one that has not expired stands under its key.
-- Parameters: kind, key, body, keep (microseconds), replaces (1 gives the one that stands this body), now.
-- Rows: none.
-- Concurrency: of several who make the same note the first one's stands.
-- Indexes: the primary key of perdure_notes.
INSERT INTO perdure_notes (kind, key, made_at, expires_at, body)
VALUES (:kind, :key, :now, :now + :keep, :body)
ON CONFLICT (kind, key) DO UPDATE
SET
    made_at = CASE WHEN perdure_notes.expires_at <= :now THEN excluded.made_at ELSE perdure_notes.made_at END,
    expires_at = CASE WHEN perdure_notes.expires_at <= :now THEN excluded.expires_at ELSE perdure_notes.expires_at END,
    body = excluded.body
WHERE
    perdure_notes.expires_at <= :now
    OR :replaces = 1
