-- schema: whether the schema is there, and whether Perdure's tables are in it.
-- Parameters: schema (its name).
-- Rows: one (whether the schema is, whether the tables are).
-- Concurrency: reads only.
-- Indexes: those of the catalogue.
SELECT
    EXISTS (
        SELECT 1
        FROM pg_catalog.pg_namespace
        WHERE pg_namespace.nspname = :schema::text
    ),
    EXISTS (
        SELECT 1
        FROM pg_catalog.pg_class
        INNER JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_class.relnamespace
        WHERE
            pg_namespace.nspname = :schema::text
            AND pg_class.relname = 'schema'
            AND pg_class.relkind = 'r'
    )
