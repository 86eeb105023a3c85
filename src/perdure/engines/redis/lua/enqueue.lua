-- enqueue: makes jobs, but none whose id exists or whose (task, unique key) is taken by a live job.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then per job id, task, queue, args, priority, delay, run_at, unique, max_attempts, retry, delivery,
--     timeout. Of delay and run_at at most one is not ''; unique and what follows it is '' for none, else '=' and it.
-- Returns: the id that stands for each job, in order.
-- Guarantees: all or none; everything is looked at before the first write. The first write needs memory, so that a full
--     server refuses the whole batch. A repeated call changes nothing and answers the same.
--+ start
--+ given
--+ counts
--+ lines
--+ unique
local WIDTH = 12
local NAMES = {'max_attempts', 'retry', 'delivery', 'timeout'}
expect('zset', 'jobs', 'waiting')
expect('hash', 'counts', 'unique')

local standing = {}
local new = {}
local made = {}
local taken = {}
for at = 3, #ARGV, WIDTH do
  local id, task, queue, unique = ARGV[at], ARGV[at + 1], ARGV[at + 2], given(ARGV[at + 7])
  local field = unique and unique_field(task, unique)
  local holder = false
  if made[id] or redis.call('EXISTS', prefix .. 'job:' .. id) == 1 then
    holder = id
  elseif field then
    -- [INV-12] One live job per task and unique key.
    holder = taken[field] or redis.call('HGET', prefix .. 'unique', field)
  end
  if not holder then
    local priority = tonumber(ARGV[at + 4])
    if not priority or priority ~= math.floor(priority) or priority < -100 or priority > 100 then
      return redis.error_reply('PERDURE A priority is a whole number from -100 to 100.')
    end
    expect('zset', 'ready:fresh:' .. queue)
    new[#new + 1] = at
    made[id] = true
    if field then
      taken[field] = id
    end
    holder = id
  end
  standing[#standing + 1] = holder
end

local ids = {}
for _, at in ipairs(new) do
  local id, task, queue, unique = ARGV[at], ARGV[at + 1], ARGV[at + 2], given(ARGV[at + 7])
  local run_at = now_text
  if ARGV[at + 5] ~= '' then
    run_at = after(ARGV[at + 5])
  elseif ARGV[at + 6] ~= '' then
    run_at = ARGV[at + 6]
  end
  local state = tonumber(run_at) <= now and 'ready' or 'waiting'
  local fields = {
    'task', task, 'queue', queue, 'state', state, 'run_at', run_at, 'created_at', now_text, 'args', ARGV[at + 3]
  }
  if ARGV[at + 4] ~= '0' then
    fields[#fields + 1] = 'priority'
    fields[#fields + 1] = ARGV[at + 4]
  end
  if unique then
    fields[#fields + 1] = 'unique'
    fields[#fields + 1] = unique
  end
  for offset, name in ipairs(NAMES) do
    local value = given(ARGV[at + 7 + offset])
    if value then
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
  end
  -- [INV-15] Nothing can go wrong any more: a batch is made whole or not at all.
  redis.call('HSET', prefix .. 'job:' .. id, unpack(fields))
  if unique then
    redis.call('HSET', prefix .. 'unique', unique_field(task, unique), id)
  end
  ids[#ids + 1] = 0
  ids[#ids + 1] = id
  count(state, 'fresh', queue, 1)
  stand(state, 'fresh', queue, tonumber(ARGV[at + 4]), run_at, id)
end
add_all(prefix .. 'jobs', ids)
write_lines()
write_counts()
tell_news()
return standing
