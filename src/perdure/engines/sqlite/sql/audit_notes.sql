-- audit: every note.
-- Parameters: none.
-- Rows: (kind, key, body, made_at) of each.
-- Concurrency: reads only.
-- Indexes: none; notes are kept for a time.
SELECT
    kind,
    key,
    body,
    made_at
FROM perdure_notes
