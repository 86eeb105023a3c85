-- How many microseconds the statement has taken so far.
(/*+ real_time */ - (EXTRACT(EPOCH FROM STATEMENT_TIMESTAMP()) * 1000000)::bigint)
