-- note: the note that stands under a key.
-- Parameters: kind, key.
-- Rows: (kind, key, body, made_at), one unless it was forgotten meanwhile.
-- Concurrency: runs after the insert, so that it sees what stood in its way.
-- Indexes: the primary key of notes.
SELECT
    kind,
    key,
    body,
    made_at
FROM perdure.notes
WHERE
    kind = :kind::text
    AND key = :key::text
