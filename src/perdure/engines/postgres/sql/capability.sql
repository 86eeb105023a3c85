-- capability: what should be known about the server.
-- Parameters: none.
-- Rows: one (version, version as a number, synchronous_commit, fsync, whether it is a standby).
-- Concurrency: reads only.
-- Indexes: none.
SELECT
    CURRENT_SETTING('server_version'),
    CURRENT_SETTING('server_version_num')::integer,
    CURRENT_SETTING('synchronous_commit'),
    CURRENT_SETTING('fsync'),
    PG_IS_IN_RECOVERY()
