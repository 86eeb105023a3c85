-- The store's time: the server's, at the start of the statement, unless a test gives its own.
COALESCE(:now::bigint, (EXTRACT(EPOCH FROM STATEMENT_TIMESTAMP()) * 1000000)::bigint)
