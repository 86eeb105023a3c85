-- queues, count: how many jobs there are, by queue, state and lane, which queues are paused, and what operators have set.
-- KEYS: the store's prefix.
-- ARGV: now, sender.
-- Returns: how many jobs there are in all; `state:lane:queue`, number of each counter; {queue, `paused_at|reason`, end
--     or ''} of each paused queue; `name:queue`, value of each setting.
-- Guarantees: reads only; its cost follows the number of queues, not of jobs.
--+ start
--+ paused
local paused = {}
local switches = redis.call('HGETALL', prefix .. 'paused')
for at = 1, #switches, 2 do
  if is_paused(switches[at]) then
    local ends_at = redis.call('HGET', prefix .. 'paused_until', switches[at])
    paused[#paused + 1] = {switches[at], switches[at + 1], ends_at or ''}
  end
end
return {
  redis.call('ZCARD', prefix .. 'jobs'), redis.call('HGETALL', prefix .. 'counts'), paused,
  redis.call('HGETALL', prefix .. 'settings')
}
