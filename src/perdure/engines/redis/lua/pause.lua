-- pause: stops fetching from a queue.
-- KEYS: the store's prefix.
-- ARGV: now, sender, queue, reason ('' for none, else '=' and it).
-- Returns: 1 when that changed anything, else 0.
-- Guarantees: a fetch after it finds nothing in the queue; a second pause keeps the first's time and reason.
--+ start
--+ room
expect('hash', 'paused')
begin_to_write()
return redis.call('HSETNX', prefix .. 'paused', ARGV[3], now_text .. '|' .. ARGV[4])
