-- rights: what the session's role may not do with the store's tables, of what it needs.
-- Parameters: schema (its name), tables and rights (one right for each table named).
-- Rows: one (the role, whether it may use the schema, `RIGHT table` of each that it lacks; tables that are not there are
--     left out).
-- Concurrency: reads only.
-- Indexes: those of the catalogue.
SELECT
    CURRENT_USER::text,
    COALESCE(
        (
            SELECT HAS_SCHEMA_PRIVILEGE(place.oid, 'USAGE')
            FROM pg_catalog.pg_namespace AS place
            WHERE place.nspname = :schema::text
        ),
        TRUE
    ),
    ARRAY(
        SELECT needed.privilege || ' ' || needed.name
        FROM ROWS FROM (UNNEST(:tables::text[]), UNNEST(:rights::text[])) AS needed (name, privilege)
        INNER JOIN pg_catalog.pg_class AS found ON found.relname = needed.name
        INNER JOIN pg_catalog.pg_namespace AS place ON place.oid = found.relnamespace
        WHERE
            place.nspname = :schema::text
            AND NOT HAS_TABLE_PRIVILEGE(found.oid, needed.privilege)
    )
