-- Forwards of dead jobs: one record each, a line of those due by queue, and how many there are in each state.
local forward_changes = {}

local function count_forward(state, by)
  forward_changes[state] = (forward_changes[state] or 0) + by
end

local function write_forward_counts()
  for state, by in pairs(forward_changes) do
    if by ~= 0 then
      change_counter(prefix .. 'forward_counts', state, by)
    end
  end
end

-- Ends the forwarding of a job that is not dead any more, if there is one.
local function forget_forward(id)
  local found = redis.call('HMGET', prefix .. 'forward:' .. id, 'state', 'queue')
  if found[1] then
    redis.call('DEL', prefix .. 'forward:' .. id)
    redis.call('ZREM', prefix .. 'forwards:' .. found[2], id)
    count_forward(found[1], -1)
  end
end

-- Marks a dead job as due to its sink.
local function begin_forward(id, attempt, queue, sink)
  forget_forward(id)
  local key = prefix .. 'forward:' .. id
  redis.call('HSET', key, 'attempt', attempt, 'queue', queue, 'state', 'pending', 'next_at', now_text)
  if sink then
    redis.call('HSET', key, 'sink', sink)
  end
  redis.call('ZADD', prefix .. 'forwards:' .. queue, now_text, id)
  count_forward('pending', 1)
end

-- Refuses keys of the wrong type before the first write; the record of the forward may name another queue than its job.
local function expect_forward(id, queue)
  expect('hash', 'forward_counts', 'forward:' .. id)
  expect('zset', 'forwards:' .. queue)
  local named = redis.call('HGET', prefix .. 'forward:' .. id, 'queue')
  if named and named ~= queue then
    expect('zset', 'forwards:' .. named)
  end
end
