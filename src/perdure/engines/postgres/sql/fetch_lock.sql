-- fetch: lets one fetch at a time claim from queues with a limit on what runs, until its transaction ends.
-- Parameters: keys (one per queue and schema, as texts).
-- Rows: one per key, empty.
-- Concurrency: keys are locked in their own order by everybody, so that nobody waits in a circle.
-- Indexes: none.
SELECT PG_ADVISORY_XACT_LOCK(HASHTEXTEXTENDED(wanted.key, 0))::text
FROM (
    SELECT UNNEST(:keys::text[]) AS key
    ORDER BY 1
) AS wanted
