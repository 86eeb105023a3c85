-- schema: whether Perdure's tables are in the schema at all.
-- Parameters: schema (its name).
-- Rows: one (whether they are).
-- Concurrency: reads only.
-- Indexes: those of the catalogue.
SELECT EXISTS (
    SELECT 1
    FROM pg_catalog.pg_class
    INNER JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_class.relnamespace
    WHERE
        pg_namespace.nspname = :schema::text
        AND pg_class.relname = 'schema'
        AND pg_class.relkind = 'r'
)
