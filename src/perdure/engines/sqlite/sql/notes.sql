-- notes: the notes of a kind that stand, newest first.
-- Parameters: kind, now, limit.
-- Rows: (kind, key, body, made_at).
-- Concurrency: reads only.
-- Indexes: perdure_notes_made.
SELECT
    kind,
    key,
    body,
    made_at
FROM perdure_notes
WHERE
    kind = :kind
    AND expires_at > :now
ORDER BY made_at DESC, key DESC
LIMIT :limit
