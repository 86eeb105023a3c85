-- commit: writes what follows attempts.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then per attempt id, attempt, worker, token, state, lane, failures, recoveries,
--     reason, started_at; and where it succeeded ended_at, result, else queue, delay, error, fingerprint,
--     sink, record. reason, queue, delay, error, fingerprint, sink and result are '' for none, else '=' and it. The record is what
--     the history keeps of the attempt, opaque here.
-- Returns: for each 1 when it was accepted, else 0.
-- Guarantees: an attempt is accepted once, from the worker that runs it. A repeated commit with the same token is
--     answered as the first was, and changes nothing. A job whose cancellation was asked for ends cancelled where it
--     would have gone on, and keeps the reason given with the request. Fences are read before the first write. A full
--     server takes commits all the same.
--+ start
--+ given
--+ counts
--+ lines
--+ unique
--+ unfinished
--+ forwards
--+ room
local HEAD, SUCCESS, OTHER = 10, 2, 6
expect('zset', 'waiting', 'ended', 'dead', 'cancelled')
expect('hash', 'counts', 'unique')

-- Whether the attempt was committed before under this very token.
local function was_accepted(id, attempt, token, last)
  if last == token then
    return true
  end
  local record = redis.call('LINDEX', prefix .. 'attempts:' .. id, attempt - 1)
  return record and string.sub(record, 1, #token + 1) == token .. '|'
end

local answers = {}
local accepted = {}
local seen = {}
local at = 3
while at <= #ARGV do
  local id, attempt, worker, token = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local job = redis.call(
    'HMGET', prefix .. 'job:' .. id,
    'state', 'attempt', 'worker', 'lane', 'queue', 'is_cancelling', 'token', 'task', 'unique', 'priority', 'origin',
    'reason', 'run_at', 'error', 'parked_at', 'schedule'
  )
  local answer = 0
  -- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
  if job[1] == 'running' and job[2] == attempt and job[3] == worker and not seen[id] then
    expect('hash', 'running:' .. worker)
    expect('set', 'cancelling:' .. worker)
    if job[16] then
      expect('set', 'unfinished:' .. job[16])
    end
    if ARGV[at + 4] ~= 'succeeded' then
      expect('list', 'attempts:' .. id)
      expect('zset', 'ready:' .. ARGV[at + 5] .. ':' .. (given(ARGV[at + HEAD]) or job[5]))
      if ARGV[at + HEAD + 4] ~= '' then
        expect_forward(id, job[11] or job[5])
      end
    end
    accepted[#accepted + 1] = {at, job}
    seen[id] = true
    answer = 1
  elseif was_accepted(id, attempt, token, job[7]) then
    answer = 1
  end
  answers[#answers + 1] = answer
  at = at + HEAD + (ARGV[at + 4] == 'succeeded' and SUCCESS or OTHER)
end

-- Takes the attempt from its worker; a worker that is struck off and holds nothing more is forgotten.
local function let_go(worker, id, is_cancelling)
  redis.call('HDEL', prefix .. 'running:' .. worker, id)
  if is_cancelling then
    redis.call('SREM', prefix .. 'cancelling:' .. worker, id)
  end
end

local function settle(at, job)
  local id, attempt, worker, token = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local state, lane, reason = ARGV[at + 4], ARGV[at + 5], given(ARGV[at + 8])
  local queue, run_at, is_cancelling = job[5], job[13], job[6]
  local key = prefix .. 'job:' .. id
  local set = {'started_at', ARGV[at + 9]}
  local gone = {'worker', 'is_cancelling'}

  local function put(name, value)
    if value then
      set[#set + 1] = name
      set[#set + 1] = value
    else
      gone[#gone + 1] = name
    end
  end

  let_go(worker, id, is_cancelling)
  count('running', job[4] or 'fresh', queue, -1)
  if state == 'succeeded' then
    put('attempt_ended_at', ARGV[at + HEAD])
    put('result', given(ARGV[at + HEAD + 1]))
    put('token', token)
    gone[#gone + 1] = 'error'
    gone[#gone + 1] = 'delay'
    gone[#gone + 1] = 'parked_at'
    gone[#gone + 1] = 'fingerprint'
  else
    local moved, delay, failure = given(ARGV[at + HEAD]), given(ARGV[at + HEAD + 1]), given(ARGV[at + HEAD + 2])
    if state == 'waiting' or state == 'ready' then
      run_at = after(delay or '0')
      put('run_at', run_at)
      -- [INV-11] No retry outlives a cancel.
      if is_cancelling then
        state = 'cancelled'
      end
    end
    if is_cancelling then
      delay = nil
      reason = state == 'dead' and reason or job[12]
    end
    if moved and moved ~= queue then
      put('origin', job[11] or queue)
      put('queue', moved)
      queue = moved
    end
    put('delay', delay)
    put('error', failure or job[14])
    put('fingerprint', given(ARGV[at + HEAD + 3]))
    put('parked_at', reason == 'parked' and not is_cancelling and (job[15] or now_text))
    redis.call(
      'RPUSH', prefix .. 'attempts:' .. id, token .. '|' .. (delay or '') .. '|' .. ARGV[at + HEAD + 5]
    )
  end
  put('state', state)
  put('lane', lane == 'retry' and lane)
  put('failures', ARGV[at + 6] ~= '0' and ARGV[at + 6])
  put('recoveries', ARGV[at + 7] ~= '0' and ARGV[at + 7])
  put('reason', reason)
  if state ~= 'waiting' and state ~= 'ready' then
    put('ended_at', now_text)
    free_unique(job[8], job[9], id)
    finish(job[16], id)
  end
  redis.call('HSET', key, unpack(set))
  redis.call('HDEL', key, unpack(gone))
  count(state, lane, queue, 1)
  if state == 'waiting' or state == 'ready' then
    stand(state, lane, queue, tonumber(job[10] or '0'), run_at, id)
  elseif state == 'dead' then
    add_to(prefix .. 'dead', 0, id)
    local sink = given(ARGV[at + HEAD + 4])
    if sink then
      -- [INV-22] Due to its sink in the very step in which it dies.
      begin_forward(id, attempt, job[11] or job[5], sink)
    end
  else
    add_to(prefix .. 'ended', now_text, id)
    if state == 'cancelled' then
      add_to(prefix .. 'cancelled', 0, id)
    end
  end
  return worker
end

if #accepted == 0 then
  return answers
end
begin_to_write()
local workers = {}
for _, each in ipairs(accepted) do
  workers[settle(each[1], each[2])] = true
end
for worker in pairs(workers) do
  if redis.call('EXISTS', prefix .. 'running:' .. worker) == 0 then
    redis.call('SREM', prefix .. 'vanished', worker)
  end
end
write_lines()
write_counts()
write_forward_counts()
tell_news()
return answers
