-- Makes jobs from arguments. Jobs of one kind share task, queue, priority, delay, run_at, max_attempts, retry, delivery,
-- timeout, schedule, tick_at, which stand once for all of them; of delay and run_at at most one is not ''. A job has kind (its
-- place among the kinds), id, unique, args, long args. retry, schedule, unique and both args are '' for none, else '=' and it.
-- Needs the fragments `many`, `counts`, `lines`, `unique` and `unfinished`.
local KIND_WIDTH, JOB_WIDTH = 11, 5
local kinds = {}
local made_number = 0
local made_records, made_args, made_ids, made_unique, scheduled = {}, {}, {}, {}, {}

-- A kind as its jobs need it, or what is wrong with it; asked for before the first write. The kinds begin at `first`.
local function look_at_kind(number, first)
  if kinds[number] then
    return kinds[number]
  end
  local at = first + (number - 1) * KIND_WIDTH
  local task, queue, priority, schedule = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 9]
  if not priority or priority ~= math.floor(priority) or priority < -100 or priority > 100 then
    return nil, redis.error_reply('PERDURE A priority is a whole number from -100 to 100.')
  end
  if schedule ~= '' then
    expect('set', unfinished_of(schedule))
  end
  local run_at = now_text
  if ARGV[at + 3] ~= '' then
    run_at = after(ARGV[at + 3])
  elseif ARGV[at + 4] ~= '' then
    run_at = ARGV[at + 4]
  end
  local state = tonumber(run_at) <= now and 'ready' or 'waiting'
  -- A record as fragments/record.lua has it, but for the unique key between the two, and the args at the end.
  local head = {state, '0', '', '', '', '', '0', '0', '', '', '', '', '', '', '', '', queue, ''}
  local tail = {
    '', schedule, task, ARGV[at + 2], run_at, '', '', now_text, ARGV[at + 5], ARGV[at + 6], ARGV[at + 7], ARGV[at + 8],
    ARGV[at + 10], ''
  }
  kinds[number] = {
    task = task, queue = queue, state = state, schedule = schedule, number = 0,
    head = table.concat(head, '\255'), tail = table.concat(tail, '\255'),
    members = line_of(state, 'fresh', queue), score = state == 'ready' and -priority or 0, place = place_of(run_at, '')
  }
  return kinds[number]
end

local function make(kind, id, unique, args, long_args)
  local at = 2 * made_number + 1
  made_number = made_number + 1
  made_records[at], made_records[at + 1] = id, kind.head .. unique .. kind.tail .. args .. '\255'
  made_ids[at], made_ids[at + 1] = 0, id
  if long_args ~= '' then
    made_args[#made_args + 1] = id
    made_args[#made_args + 1] = string.sub(long_args, 2)
  end
  local members = kind.members
  at = #members + 1
  members[at], members[at + 1] = kind.score, kind.place .. id
  kind.number = kind.number + 1
  if unique ~= '' then
    made_unique[#made_unique + 1] = unique_field(kind.task, unique)
    made_unique[#made_unique + 1] = id
  end
  if kind.schedule ~= '' then
    scheduled[#scheduled + 1] = {unfinished_of(kind.schedule), id}
  end
end

-- The counters come first: they need memory, so that a full server refuses the whole batch.
local function write_made()
  for _, kind in pairs(kinds) do
    count(kind.state, 'fresh', kind.queue, kind.number)
  end
  write_counts()
  write_many('HSET', prefix .. 'records', made_records)
  write_many('HSET', prefix .. 'args', made_args)
  write_many('HSET', prefix .. 'unique', made_unique)
  for _, each in ipairs(scheduled) do
    redis.call('SADD', prefix .. each[1], each[2])
  end
  write_many('ZADD', prefix .. 'jobs', made_ids)
end
