-- put schedule: keeps a schedule under its name, a new one or in place of the revision that it replaces.
-- Parameters: name, revision, replaces (null: a new one), next_at, is_queued, document.
-- Rows: none; the count of changed rows says whether it was kept.
-- Concurrency: of two changes of one revision the first is kept. A change that was made already is made again, to no effect;
--     a schedule that was removed does not come back by a change.
-- Indexes: the primary key of perdure_schedules.
INSERT INTO perdure_schedules (name, revision, next_at, is_queued, document)
SELECT
    :name,
    :revision,
    :next_at,
    :is_queued,
    :document
WHERE
    :replaces IS NULL
    OR EXISTS (SELECT 1 FROM perdure_schedules WHERE name = :name)
ON CONFLICT (name) DO UPDATE
SET
    revision = excluded.revision,
    next_at = excluded.next_at,
    is_queued = excluded.is_queued,
    document = excluded.document
WHERE
    perdure_schedules.revision = :replaces
    OR perdure_schedules.revision = excluded.revision
