-- resume: lets a queue be fetched from again.
-- KEYS: the store's prefix.
-- ARGV: now, sender, queue.
-- Returns: 1 when that changed anything, else 0.
-- Guarantees: a repeated resume changes nothing; others are told.
--+ start
local is_changed = redis.call('HDEL', prefix .. 'paused', ARGV[3])
if is_changed == 1 and sender ~= '' then
  redis.call('PUBLISH', prefix .. 'hints', sender)
end
return is_changed
