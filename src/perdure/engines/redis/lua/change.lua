-- change: makes waiting or ready jobs due at another time, come before others, stand in another queue, or try more or less.
-- KEYS: the store's prefix.
-- ARGV: now, sender, delay, run_at, priority, queue, max_attempts; then ids. Of delay and run_at at most one is not ''; what
--     follows them is '' for as it is, else '=' and it; '=' alone takes max_attempts back.
-- Returns: for each id `changed`, `wrong state` or `not found`.
-- Guarantees: a job that a worker has claimed is left as it is; one that is changed is claimed as it then is.
--+ start
--+ given
--+ counts
--+ lines
--+ room
local FIRST = 8
local run_at
if ARGV[3] ~= '' then
  run_at = after(ARGV[3])
elseif ARGV[4] ~= '' then
  run_at = ARGV[4]
end
local priority, queue, limit = given(ARGV[5]), given(ARGV[6]), given(ARGV[7])
expect('zset', 'waiting')
expect('hash', 'counts')
if priority and (not tonumber(priority) or math.abs(tonumber(priority)) > 100) then
  return redis.error_reply('PERDURE A priority is a whole number from -100 to 100.')
end

-- A field that has its usual value is absent.
local function put(job, name, value, usual)
  if value == usual then
    redis.call('HDEL', job, name)
  else
    redis.call('HSET', job, name, value)
  end
end

local function change(id, found)
  local job = prefix .. 'job:' .. id
  local state, lane, home, due = found[1], found[2] or 'fresh', queue or found[3], run_at or found[5]
  local next_state = state
  if run_at then
    next_state = tonumber(run_at) <= now and 'ready' or 'waiting'
  end
  leave(state, lane, found[3], found[5], id)
  redis.call('HSET', job, 'state', next_state, 'run_at', due, 'queue', home)
  if priority then
    put(job, 'priority', priority, '0')
  end
  if home ~= found[3] then
    redis.call('HDEL', job, 'origin')
  end
  if limit then
    put(job, 'max_attempts', limit, '')
  end
  count(state, lane, found[3], -1)
  count(next_state, lane, home, 1)
  return next_state, lane, home, tonumber(priority or found[4] or '0'), due
end

local function is_open(state)
  return state == 'waiting' or state == 'ready'
end

for at = FIRST, #ARGV do
  local found = redis.call('HMGET', prefix .. 'job:' .. ARGV[at], 'state', 'lane', 'queue')
  if is_open(found[1]) then
    local lane = 'ready:' .. (found[2] or 'fresh') .. ':'
    expect('zset', lane .. found[3], lane .. (queue or found[3]))
  end
end

begin_to_write()
local answers = {}
local done = {}
for at = FIRST, #ARGV do
  local id = ARGV[at]
  local found = redis.call('HMGET', prefix .. 'job:' .. id, 'state', 'lane', 'queue', 'priority', 'run_at')
  local answer = found[1] and 'wrong state' or 'not found'
  -- [INV-23] Only what has not started is changed.
  if is_open(found[1]) then
    answer = 'changed'
    if not done[id] then
      local state, lane, home, rank, due = change(id, found)
      stand(state, lane, home, rank, due, id)
      done[id] = true
    end
  end
  answers[#answers + 1] = answer
end
write_lines()
write_counts()
tell_news()
return answers
