-- Makes jobs from arguments: per job id, task, queue, args, priority, delay, run_at, unique, max_attempts, retry, delivery,
-- timeout, schedule, tick_at. Of delay and run_at at most one is not ''; unique and what follows it is '' for none, else '='
-- and it.
local WIDTH = 14
local NAMES = {'max_attempts', 'retry', 'delivery', 'timeout', 'schedule', 'tick_at'}
local made_ids = {}

-- Looks at what a new job needs, before the first write; gives what is wrong with it.
local function look_at_new(at)
  local priority = tonumber(ARGV[at + 4])
  if not priority or priority ~= math.floor(priority) or priority < -100 or priority > 100 then
    return redis.error_reply('PERDURE A priority is a whole number from -100 to 100.')
  end
  expect('zset', 'ready:fresh:' .. ARGV[at + 2])
  if ARGV[at + 12] ~= '' then
    expect('set', 'unfinished:' .. given(ARGV[at + 12]))
  end
  return nil
end

local function make(at)
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
  redis.call('HSET', prefix .. 'job:' .. id, unpack(fields))
  if unique then
    redis.call('HSET', prefix .. 'unique', unique_field(task, unique), id)
  end
  if ARGV[at + 12] ~= '' then
    redis.call('SADD', prefix .. 'unfinished:' .. given(ARGV[at + 12]), id)
  end
  made_ids[#made_ids + 1] = 0
  made_ids[#made_ids + 1] = id
  count(state, 'fresh', queue, 1)
  stand(state, 'fresh', queue, tonumber(ARGV[at + 4]), run_at, id)
end

local function write_made()
  add_all(prefix .. 'jobs', made_ids)
end
