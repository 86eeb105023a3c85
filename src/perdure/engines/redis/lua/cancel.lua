-- cancel: ends waiting and ready jobs, and marks running ones for their workers.
-- KEYS: the store's prefix.
-- ARGV: now, sender, reason; then ids.
-- Returns: for each id `cancelled`, `asked`, `already cancelled`, `already ended` or `not found`.
-- Guarantees: a job that was answered `cancelled` is never claimed afterwards. The first reason asked with stands.
--+ start
--+ counts
--+ lines
--+ unique
--+ unfinished
--+ room
local reason = ARGV[3]
local ANSWERS = {cancelled = 'already cancelled', dead = 'already ended', succeeded = 'already ended'}
expect('zset', 'waiting', 'ended', 'cancelled')
expect('hash', 'counts', 'unique')

local function end_now(id, job)
  local state, lane, queue = job[1], job[2] or 'fresh', job[3]
  leave(state, lane, queue, job[4], id)
  redis.call('HSET', prefix .. 'job:' .. id, 'state', 'cancelled', 'reason', reason, 'ended_at', now_text)
  free_unique(job[5], job[6], id)
  finish(job[9], id)
  count(state, lane, queue, -1)
  count('cancelled', lane, queue, 1)
  redis.call('ZADD', prefix .. 'ended', now_text, id)
  redis.call('ZADD', prefix .. 'cancelled', 0, id)
end

local function ask(id, job)
  if not job[8] then
    redis.call('HSET', prefix .. 'job:' .. id, 'is_cancelling', '1', 'reason', reason)
  end
  redis.call('SADD', prefix .. 'cancelling:' .. job[7], id)
  is_news = true
end

local found = {}
for at = 4, #ARGV do
  local id = ARGV[at]
  local job = redis.call(
    'HMGET', prefix .. 'job:' .. id,
    'state', 'lane', 'queue', 'run_at', 'task', 'unique', 'worker', 'is_cancelling', 'schedule'
  )
  if job[1] == 'running' then
    expect('set', 'cancelling:' .. job[7])
  elseif job[1] == 'ready' then
    expect('zset', 'ready:' .. (job[2] or 'fresh') .. ':' .. job[3])
  end
  if job[9] then
    expect('set', 'unfinished:' .. job[9])
  end
  found[#found + 1] = job
end

begin_to_write()
local answers = {}
local done = {}
for number, job in ipairs(found) do
  local id, state = ARGV[number + 3], job[1]
  local answer = ANSWERS[state or ''] or 'not found'
  if state == 'running' then
    ask(id, job)
    answer = 'asked'
  elseif state == 'waiting' or state == 'ready' then
    answer = done[id] and 'already cancelled' or 'cancelled'
    if not done[id] then
      end_now(id, job)
      done[id] = true
    end
  end
  answers[#answers + 1] = answer
end
write_counts()
tell_news()
return answers
