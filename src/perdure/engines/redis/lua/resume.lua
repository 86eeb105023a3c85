-- resume: lets a queue be fetched from again, and clears away a pause that has ended by itself.
-- KEYS: the store's prefix.
-- ARGV: now, sender, queue.
-- Returns: 1 when that changed anything, else 0.
-- Guarantees: a repeated resume changes nothing; others are told.
--+ start
--+ paused
--+ bell
local was_paused = is_paused(ARGV[3])
redis.call('HDEL', prefix .. 'paused', ARGV[3])
redis.call('HDEL', prefix .. 'paused_until', ARGV[3])
if was_paused and sender ~= '' then
  redis.call('PUBLISH', prefix .. 'hints', sender)
  if has_ready(ARGV[3]) then
    ring(ARGV[3])
  end
end
return was_paused and 1 or 0
