-- name schedules: notes that a living worker names some schedules in its code.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then names.
-- Returns: 0.
-- Guarantees: changes no revision, and makes no schedule.
--+ start
for at = 3, #ARGV do
  expect('hash', 'schedule:' .. ARGV[at])
end
for at = 3, #ARGV do
  local key = prefix .. 'schedule:' .. ARGV[at]
  if redis.call('EXISTS', key) == 1 then
    redis.call('HSET', key, 'named_at', now_text)
  end
end
return 0
