-- prune: deletes succeeded and cancelled jobs that ended long ago, oldest first, with their history; expired notes; and
--     pauses that have ended by themselves.
-- KEYS: the store's prefix.
-- ARGV: now, sender, age (microseconds), limit.
-- Returns: how many were deleted.
-- Guarantees: any worker may run it. Dead and live jobs are in no line that it reads. Looks at no more than `limit` jobs.
--+ start
--+ counts
--+ forget_notes
expect('zset', 'ended', 'jobs', 'cancelled')
expect('zset', 'notes_expiring')
expect('hash', 'counts', 'notes', 'paused', 'paused_until')
-- [INV-14] Never dead or live jobs.
local before = text(now - tonumber(ARGV[3]))
local ids = redis.call('ZRANGEBYSCORE', prefix .. 'ended', '-inf', before, 'LIMIT', 0, ARGV[4])
local found = {}
for _, id in ipairs(ids) do
  found[#found + 1] = redis.call('HMGET', prefix .. 'job:' .. id, 'state', 'lane', 'queue')
end
for number, id in ipairs(ids) do
  local job = found[number]
  redis.call('DEL', prefix .. 'job:' .. id, prefix .. 'attempts:' .. id)
  if job[1] then
    count(job[1], job[2] or 'fresh', job[3], -1)
  end
end
for first = 1, #ids, 4000 do
  local last = math.min(first + 3999, #ids)
  redis.call('ZREM', prefix .. 'ended', unpack(ids, first, last))
  redis.call('ZREM', prefix .. 'cancelled', unpack(ids, first, last))
  redis.call('ZREM', prefix .. 'jobs', unpack(ids, first, last))
end
local pauses = redis.call('HGETALL', prefix .. 'paused_until')
for at = 1, #pauses, 2 do
  if tonumber(pauses[at + 1]) <= now then
    redis.call('HDEL', prefix .. 'paused', pauses[at])
    redis.call('HDEL', prefix .. 'paused_until', pauses[at])
  end
end
write_counts()
forget_notes()
return #ids
