-- notes: the notes of a kind that stand, newest first.
-- Parameters: kind, limit, now.
-- Rows: (kind, key, body, made_at).
-- Concurrency: reads only.
-- Indexes: notes_made.
SELECT
    kind,
    key,
    body,
    made_at
FROM perdure.notes
WHERE
    kind = :kind::text
    AND expires_at > /*+ now */
ORDER BY made_at DESC, key DESC
LIMIT :limit::bigint
