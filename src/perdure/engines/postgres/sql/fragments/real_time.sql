-- The real time, in microseconds, also where a test gives its own as the store's time.
(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000000)::bigint
