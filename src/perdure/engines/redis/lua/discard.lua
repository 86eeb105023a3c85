-- discard: dismisses dead jobs; they end cancelled and are pruned like any cancelled job.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then ids.
-- Returns: how many were dismissed.
-- Guarantees: a job that is no longer dead stays as it is. Whatever was to be forwarded is so no more.
--+ start
--+ counts
--+ forwards
--+ room
expect('zset', 'dead', 'cancelled', 'ended')
expect('hash', 'counts')
local dead = {}
for at = 3, #ARGV do
  local job = redis.call('HMGET', prefix .. 'job:' .. ARGV[at], 'state', 'lane', 'queue', 'origin')
  if job[1] == 'dead' then
    expect_forward(ARGV[at], job[4] or job[3])
    dead[#dead + 1] = {ARGV[at], job[2] or 'fresh', job[3]}
  end
end
begin_to_write()
for _, each in ipairs(dead) do
  local id, lane, queue = each[1], each[2], each[3]
  redis.call('ZREM', prefix .. 'dead', id)
  forget_forward(id)
  redis.call('HSET', prefix .. 'job:' .. id, 'state', 'cancelled', 'reason', 'discarded', 'ended_at', now_text)
  redis.call('ZADD', prefix .. 'ended', now_text, id)
  redis.call('ZADD', prefix .. 'cancelled', 0, id)
  count('dead', lane, queue, -1)
  count('cancelled', lane, queue, 1)
end
write_counts()
write_forward_counts()
return #dead
