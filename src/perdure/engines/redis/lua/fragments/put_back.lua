-- Puts an ended job back into the queue that it came from, failures starting again at 0.
-- Whatever was to be forwarded of it is so no more. Needs the fragment `forwards`.
-- Gives false when a live job holds its unique key: then nothing has changed.
local function put_back(id, run_at)
  local job = prefix .. 'job:' .. id
  local found = redis.call(
    'HMGET', job, 'state', 'lane', 'queue', 'origin', 'task', 'unique', 'priority', 'attempt', 'schedule'
  )
  local state, queue, task, unique = found[1], found[3], found[5], found[6]
  if unique then
    local field = unique_field(task, unique)
    if redis.call('HEXISTS', prefix .. 'unique', field) == 1 then
      return false
    end
    redis.call('HSET', prefix .. 'unique', field, id)
  end
  local lane = found[8] and 'retry' or 'fresh'
  local home = found[4] or queue
  local next_state = tonumber(run_at) <= now and 'ready' or 'waiting'
  redis.call(
    'HDEL', job,
    'origin', 'failures', 'recoveries', 'reason', 'fingerprint', 'delay', 'parked_at', 'ended_at', 'lane'
  )
  redis.call('HSET', job, 'state', next_state, 'run_at', run_at, 'replayed_at', run_at, 'queue', home)
  if lane == 'retry' then
    redis.call('HSET', job, 'lane', lane)
  end
  redis.call('ZREM', prefix .. state, id)
  if found[9] then
    redis.call('SADD', prefix .. 'unfinished:' .. found[9], id)
  end
  forget_forward(id)
  if state == 'cancelled' then
    redis.call('ZREM', prefix .. 'ended', id)
  end
  count(state, found[2] or 'fresh', queue, -1)
  count(next_state, lane, home, 1)
  stand(next_state, lane, home, tonumber(found[7] or '0'), run_at, id)
  return true
end
