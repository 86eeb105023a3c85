-- wakeups: wakes whoever listens, in this database and schema.
-- Parameters: channel, sender (what the wake-up says).
-- Rows: one, empty.
-- Concurrency: a hint; it is given when the transaction commits.
-- Indexes: none.
SELECT PG_NOTIFY(:channel::text, :sender::text)::text
