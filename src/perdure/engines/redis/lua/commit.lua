-- commit: writes what follows attempts.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then per attempt id, fence (state, attempt and worker as its job's record begins while it runs) and: where
--     it succeeded head (the record's beginning from now on, up to the result) and result; else '', token, state, lane,
--     failures, recoveries, reason, started_at, queue, delay, error, fingerprint, sink, record. result, reason, queue, delay,
--     error, fingerprint and sink are '' for none, else '=' and it; a result that the head has is not given again. The record is
--     what the history keeps of the attempt, opaque here.
-- Returns: the places of those that were not accepted.
-- Guarantees: an attempt is accepted once, from the worker that runs it. A repeated commit with the same token is
--     answered as the first was, and changes nothing. A job whose cancellation was asked for ends cancelled where it
--     would have gone on, and keeps the reason given with the request. Fences are read before the first write. A full
--     server takes commits all the same.
--+ start
--+ given
--+ many
--+ record
--+ running
--+ counts
--+ lines
--+ parked
--+ unique
--+ unfinished
--+ forwards
--+ ended
--+ room
local SUCCESS, OTHER = 4, 16
expect('zset', 'ended')
expect('set', 'vanished')

-- Who holds an attempt: its number, the worker, and what is taken from it.
local holders = {}

local function holder_of(fence)
  local holder = holders[fence]
  if not holder then
    local attempt, worker = string.match(fence, '^running\255(%d+)\255(.*)\255$')
    expect('set', 'running:' .. worker)
    expect('set', 'cancelling:' .. worker)
    if attempt ~= '1' then
      expect('hash', 'errors')
    end
    holder = {attempt = attempt, worker = worker, number = 0, ids = {}, cancelling = {}}
    holders[fence] = holder
  end
  return holder
end

-- Whether the attempt was committed before under the token that it now comes with.
local function was_accepted(at, record)
  local token = ARGV[at + 3]
  if ARGV[at + 2] ~= '' then
    token = string.match(ARGV[at + 2], '^' .. string.rep('[^\255]*\255', TOKEN - 1) .. '([^\255]*)\255')
  end
  if fields_of(record)[TOKEN] == token then
    return true
  end
  local attempt = string.match(ARGV[at + 1], '^running\255(%d+)')
  local kept = redis.call('LINDEX', prefix .. 'attempts:' .. ARGV[at], attempt - 1)
  return kept and string.sub(kept, 1, #token + 1) == token .. '|'
end

-- Looks at what an attempt that did not succeed needs; gives its job.
local function look_at(at, record)
  local id, job = ARGV[at], fields_of(record)
  holder_of(ARGV[at + 1])
  expect('zset', 'waiting', 'dead', 'cancelled')
  expect('hash', 'errors', 'unique')
  expect('list', 'attempts:' .. id)
  line_of('ready', ARGV[at + 5], given(ARGV[at + 10]) or job[QUEUE])
  if ARGV[at + 8] == '=parked' then
    expect('zset', 'parked:' .. job[QUEUE])
  end
  if ARGV[at + 14] ~= '' then
    expect_forward(id, home_of(job))
  end
  if job[SCHEDULE] ~= '' then
    expect('set', unfinished_of(job[SCHEDULE]))
  end
  return job
end

local written = {}
local succeeded = {}
local results = {}
local recovered = {}
local failed = {}
local dead = {}
local cancelled = {}
local freed = {}
local finished = {}

-- Takes an attempt from its worker.
local function let_go(fence, id, is_cancelling)
  local holder = holders[fence] or holder_of(fence)
  holder.number = holder.number + 1
  holder.ids[holder.number] = id
  if is_cancelling ~= '' then
    holder.cancelling[#holder.cancelling + 1] = id
  end
  return holder
end

-- Ends what only live jobs have.
local function retire(id, task, unique, schedule)
  if unique ~= '' then
    expect('hash', 'unique')
    freed[#freed + 1] = {task, unique, id}
  end
  if schedule ~= '' then
    expect('set', unfinished_of(schedule))
    finished[#finished + 1] = {schedule, id}
  end
end

local successes = 0
local tally = {}
local beginning = now_text .. END

-- What is to be written about an attempt that succeeded; the job stays in its lane.
local function succeed(id, fence, head, result, record)
  local is_cancelling, rest, lane, queue, unique, schedule, task = string.match(record, REST, #fence + 1)
  local at = 2 * successes + 1
  successes = successes + 1
  written[at], written[at + 1] = id, head .. beginning .. string.sub(record, rest)
  succeeded[successes] = id
  if let_go(fence, id, is_cancelling).attempt ~= '1' then
    recovered[#recovered + 1] = id
  end
  if result ~= '' then
    expect('hash', 'results')
    results[#results + 1] = id
    results[#results + 1] = string.sub(result, 2)
  end
  if unique ~= '' or schedule ~= '' then
    retire(id, task, unique, schedule)
  end
  local line = (lane == '' and 'fresh:' or 'retry:') .. queue
  tally[line] = (tally[line] or 0) + 1
end

local asked = {}
local places = {}
local at, number, last = 3, 0, #ARGV
while at <= last do
  number = number + 1
  asked[number], places[number] = ARGV[at], at
  at = at + (ARGV[at + 2] ~= '' and SUCCESS or OTHER)
end
local records = read_many(prefix .. 'records', asked)

local refused = {}
local others = {}
local seen = {}
for number, id in ipairs(asked) do
  local place, record = places[number], records[number]
  local fence, head = ARGV[place + 1], ARGV[place + 2]
  -- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
  if record and not seen[id] and string.sub(record, 1, #fence) == fence then
    seen[id] = true
    if head ~= '' then
      succeed(id, fence, head, ARGV[place + 3], record)
    else
      others[#others + 1] = {place, look_at(place, record)}
    end
  elseif not record or not was_accepted(place, record) then
    refused[#refused + 1] = number
  end
end
if not next(seen) then
  return refused
end
for line, number in pairs(tally) do
  count_line('running', line, -number)
  count_line('succeeded', line, number)
end

-- What becomes of a job whose attempt did not succeed, and has not been given up for good.
local function go_on(at, job, is_cancelling)
  job[RUN_AT] = after(given(ARGV[at + 11]) or '0')
  -- [INV-11] No retry outlives a cancel.
  return is_cancelling and 'cancelled' or job[STATE]
end

local function put_where_it_belongs(id, job, lane, attempt, sink)
  local state = job[STATE]
  if state == 'waiting' or state == 'ready' then
    stand(state, lane, job[QUEUE], tonumber(job[PRIORITY]), job[RUN_AT], id)
    if state == 'waiting' and job[PARKED_AT] ~= '' then
      redis.call('ZADD', prefix .. 'parked:' .. job[QUEUE], 0, parked_member(job[TASK], id))
    end
    return
  end
  job[ENDED_AT] = now_text
  retire(id, job[TASK], job[UNIQUE], job[SCHEDULE])
  if state == 'dead' then
    dead[#dead + 1] = 0
    dead[#dead + 1] = id
    if sink then
      -- [INV-22] Due to its sink in the very step in which it dies.
      begin_forward(id, attempt, home_of(job), sink)
    end
  else
    cancelled[#cancelled + 1] = id
  end
end

local function settle(at, job)
  local id, fence, token, reason = ARGV[at], ARGV[at + 1], ARGV[at + 3], ARGV[at + 8]
  local is_cancelling = job[IS_CANCELLING] ~= ''
  local holder = let_go(fence, id, job[IS_CANCELLING])
  count('running', lane_of(job), job[QUEUE], -1)
  local lane, moved, delay, failure = ARGV[at + 5], given(ARGV[at + 10]), given(ARGV[at + 11]) or '', given(ARGV[at + 12])
  job[STATE] = ARGV[at + 4]
  if job[STATE] == 'waiting' or job[STATE] == 'ready' then
    job[STATE] = go_on(at, job, is_cancelling)
  end
  if is_cancelling then
    delay = ''
    reason = job[STATE] == 'dead' and reason or job[REASON]
  end
  if moved and moved ~= job[QUEUE] then
    job[ORIGIN] = '=' .. home_of(job)
    job[QUEUE] = moved
  end
  job[PARKED_AT] = reason == '=parked' and not is_cancelling and (job[PARKED_AT] ~= '' and job[PARKED_AT] or now_text) or ''
  job[WORKER], job[IS_CANCELLING], job[STARTED_AT], job[REASON], job[DELAY] = '', '', ARGV[at + 9], reason, delay
  job[LANE], job[FAILURES], job[RECOVERIES] = lane == 'retry' and lane or '', ARGV[at + 6], ARGV[at + 7]
  job[FINGERPRINT] = given(ARGV[at + 13]) or ''
  if failure then
    failed[#failed + 1] = id
    failed[#failed + 1] = failure
  end
  redis.call('RPUSH', prefix .. 'attempts:' .. id, token .. '|' .. delay .. '|' .. ARGV[at + 15])
  put_where_it_belongs(id, job, lane, holder.attempt, given(ARGV[at + 14]))
  count(job[STATE], lane, job[QUEUE], 1)
  written[#written + 1] = id
  written[#written + 1] = record_of(job)
end

begin_to_write()
for _, each in ipairs(others) do
  settle(each[1], each[2])
end
write_many('HSET', prefix .. 'records', written)
write_many('HSET', prefix .. 'results', results)
write_many('HDEL', prefix .. 'errors', recovered)
write_many('HSET', prefix .. 'errors', failed)
end_together(succeeded)
write_many('ZADD', prefix .. 'dead', dead)
for _, id in ipairs(cancelled) do
  end_alone(id)
end
for _, each in ipairs(freed) do
  free_unique(each[1], each[2], each[3])
end
for _, each in ipairs(finished) do
  finish(each[1], each[2])
end
for _, holder in pairs(holders) do
  write_many('SREM', prefix .. 'running:' .. holder.worker, holder.ids)
  write_many('SREM', prefix .. 'cancelling:' .. holder.worker, holder.cancelling)
  -- A worker that is struck off and holds nothing more is forgotten.
  if redis.call('EXISTS', prefix .. 'running:' .. holder.worker) == 0 then
    redis.call('SREM', prefix .. 'vanished', holder.worker)
  end
end
write_lines()
write_counts()
write_forward_counts()
tell_news()
return refused
