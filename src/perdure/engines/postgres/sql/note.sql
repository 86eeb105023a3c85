-- note: makes a note, unless one that has not expired stands under its key.
-- Parameters: kind, key, body, keep (microseconds), replaces (true gives the one that stands this body), now.
-- Rows: none.
-- Concurrency: of several who make the same note the first one's stands; the others wait for it.
-- Indexes: the primary key of notes.
INSERT INTO perdure.notes AS standing (kind, key, made_at, expires_at, body)
SELECT
    :kind::text,
    :key::text,
    clock.now,
    clock.now + :keep::bigint,
    :body::text
FROM (SELECT /*+ now */ AS now) AS clock
ON CONFLICT (kind, key) DO UPDATE
SET
    made_at = CASE WHEN standing.expires_at <= excluded.made_at THEN excluded.made_at ELSE standing.made_at END,
    expires_at = CASE WHEN standing.expires_at <= excluded.made_at THEN excluded.expires_at ELSE standing.expires_at END,
    body = excluded.body
WHERE
    standing.expires_at <= excluded.made_at
    OR :replaces::boolean
