-- audit: every note.
-- Parameters: none.
-- Rows: (kind, key, body, made_at) of each.
-- Concurrency: reads only.
-- Indexes: none; notes are kept for a time.
SELECT
    notes.kind,
    notes.key,
    notes.body,
    notes.made_at
FROM perdure.notes
