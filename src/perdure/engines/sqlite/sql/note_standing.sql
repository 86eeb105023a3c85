-- note: the note that stands under a key.
-- Parameters: kind, key.
-- Rows: (kind, key, body, made_at), one.
-- Concurrency: runs in the transaction of the insert before it.
-- Indexes: the primary key of perdure_notes.
SELECT
    kind,
    key,
    body,
    made_at
FROM perdure_notes
WHERE
    kind = :kind
    AND key = :key
