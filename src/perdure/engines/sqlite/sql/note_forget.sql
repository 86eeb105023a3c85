-- note: deletes a few notes whose time is over, the longest expired first.
-- Parameters: now, limit.
-- Rows: none.
-- Concurrency: an expired note stands no more, so nobody misses it.
-- Indexes: perdure_notes_expiring.
DELETE FROM perdure_notes
WHERE
    (kind, key) IN (
        SELECT
            kind,
            key
        FROM perdure_notes
        WHERE expires_at <= :now
        ORDER BY expires_at
        LIMIT :limit
    )
