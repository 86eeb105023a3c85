-- cancelling: which of a worker's running jobs an operator wants cancelled.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker.
-- Returns: ids.
-- Guarantees: reads only.
--+ start
return redis.call('SMEMBERS', prefix .. 'cancelling:' .. ARGV[3])
