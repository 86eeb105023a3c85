-- put schedule: keeps a schedule under its name, a new one or in place of the revision that it replaces.
-- Parameters: name, revision, replaces (null: a new one), next_at, is_queued, document.
-- Rows: one (name) if it was kept, else none.
-- Concurrency: of two changes of one revision the first is kept, the other waits for it and finds another revision. A change
--     that was made already is made again, to no effect; a schedule that was removed does not come back by a change.
-- Indexes: the primary key of schedules.
INSERT INTO perdure.schedules (name, revision, next_at, is_queued, document)
SELECT
    :name::text,
    :revision::text,
    :next_at::bigint,
    :is_queued::boolean,
    :document::text
WHERE
    :replaces::text IS NULL
    OR EXISTS (SELECT 1 FROM perdure.schedules WHERE schedules.name = :name::text)
ON CONFLICT (name) DO UPDATE
SET
    revision = excluded.revision,
    next_at = excluded.next_at,
    is_queued = excluded.is_queued,
    document = excluded.document
WHERE
    schedules.revision = :replaces::text
    OR schedules.revision = excluded.revision
RETURNING name
