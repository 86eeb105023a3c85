-- pause: stops fetching from a queue, until a moment if one is given.
-- KEYS: the store's prefix.
-- ARGV: now, sender, queue, reason ('' for none, else '=' and it), until ('' for none, else a moment).
-- Returns: 1 when that changed anything, else 0.
-- Guarantees: a fetch after it finds nothing in the queue; a second pause keeps the first's time, and its reason too
--     unless the pause is to end at another time.
--+ start
--+ paused
--+ room
local queue, reason, ends_at = ARGV[3], ARGV[4], ARGV[5]
expect('hash', 'paused', 'paused_until')
local since, before, present = now_text, '', redis.call('HGET', prefix .. 'paused', queue)
if present and is_paused(queue) then
  local ended_at = redis.call('HGET', prefix .. 'paused_until', queue) or ''
  if ended_at == ends_at then
    return 0
  end
  since, before = string.match(present, '^(%d+)|(.*)$')
  since, before = since or now_text, before or ''
end
begin_to_write()
redis.call('HSET', prefix .. 'paused', queue, since .. '|' .. (reason ~= '' and reason or before))
if ends_at == '' then
  redis.call('HDEL', prefix .. 'paused_until', queue)
else
  redis.call('HSET', prefix .. 'paused_until', queue, ends_at)
end
return 1
