-- remove schedule: forgets a schedule; its jobs stay.
-- KEYS: the store's prefix.
-- ARGV: now, sender, name.
-- Returns: 1 when it was there, else 0.
-- Guarantees: a step that is based on it finds nothing to change afterwards.
--+ start
--+ schedule
expect_schedule(ARGV[3])
return drop_schedule(ARGV[3])
