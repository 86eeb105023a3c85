-- now: the store's clock.
-- KEYS: the store's prefix.
-- ARGV: now, sender.
-- Returns: microseconds since 1970, as text.
-- Guarantees: reads only.
--+ start
return now_text
