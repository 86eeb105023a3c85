-- list, count: the ids of all jobs in a state, if they are few.
-- KEYS: the store's prefix.
-- ARGV: now, sender, state (`waiting`, `ready`, `running` or `succeeded`), limit.
-- Returns: nil when there are more than `limit`; else the ids, in no order.
-- Guarantees: reads only. Looks at few more jobs than the limit.
--+ start
--+ ended
local state, limit = ARGV[3], tonumber(ARGV[4])
local ids = {}

local function take(members, from)
  for _, member in ipairs(members) do
    ids[#ids + 1] = string.sub(member, from)
  end
  return #ids <= limit
end

local function take_ready()
  for _, field in ipairs(redis.call('HKEYS', prefix .. 'counts')) do
    if string.sub(field, 1, 6) == 'ready:' and not take(redis.call('ZRANGE', prefix .. field, 0, limit), 20) then
      return false
    end
  end
  return true
end

local function take_running(workers)
  for _, worker in ipairs(workers) do
    local running = prefix .. 'running:' .. worker
    if redis.call('SCARD', running) > limit or not take(redis.call('SMEMBERS', running), 1) then
      return false
    end
  end
  return true
end

local is_few
if state == 'waiting' then
  is_few = take(redis.call('ZRANGE', prefix .. 'waiting', 0, limit), 20)
elseif state == 'ready' then
  is_few = take_ready()
elseif state == 'running' then
  is_few = take_running(redis.call('ZRANGE', prefix .. 'workers', 0, limit))
    and take_running(redis.call('SRANDMEMBER', prefix .. 'vanished', limit + 1))
else
  add_ended(ids, 'ZRANGE', limit + 1)
  is_few = #ids <= limit
end
return is_few and ids
