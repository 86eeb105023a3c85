-- cancel: ends waiting and ready jobs, and marks running ones for their workers.
-- KEYS: the store's prefix.
-- ARGV: now, sender, reason; then ids.
-- Returns: for each id `cancelled`, `asked`, `already cancelled`, `already ended` or `not found`.
-- Guarantees: a job that was answered `cancelled` is never claimed afterwards. The first reason asked with stands.
--+ start
--+ many
--+ record
--+ counts
--+ lines
--+ parked
--+ unique
--+ unfinished
--+ ended
--+ room
local reason = ARGV[3]
local ANSWERS = {cancelled = 'already cancelled', dead = 'already ended', succeeded = 'already ended'}
expect('zset', 'waiting', 'ended', 'cancelled')
expect('hash', 'records', 'counts', 'unique')

local function end_now(id, job)
  local state, lane, queue = job[STATE], lane_of(job), job[QUEUE]
  leave(state, lane, queue, job[RUN_AT], id)
  leave_parked(job[PARKED_AT], job[TASK], queue, id)
  job[STATE], job[REASON], job[ENDED_AT] = 'cancelled', '=' .. reason, now_text
  write_job(id, job)
  free_unique(job[TASK], job[UNIQUE], id)
  finish(job[SCHEDULE], id)
  count(state, lane, queue, -1)
  count('cancelled', lane, queue, 1)
  end_alone(id)
end

local function ask(id, job)
  if job[IS_CANCELLING] == '' then
    job[IS_CANCELLING], job[REASON] = '1', '=' .. reason
    write_job(id, job)
  end
  redis.call('SADD', prefix .. 'cancelling:' .. job[WORKER], id)
  is_news = true
end

local found = {}
for at = 4, #ARGV do
  local job = read_job(ARGV[at])
  if job[STATE] == 'running' then
    expect('set', 'cancelling:' .. job[WORKER])
  elseif job[STATE] == 'ready' then
    expect('zset', 'ready:' .. lane_of(job) .. ':' .. job[QUEUE])
  end
  if job[STATE] and job[SCHEDULE] ~= '' then
    expect('set', unfinished_of(job[SCHEDULE]))
  end
  if job[STATE] then
    expect_parked(job)
  end
  found[#found + 1] = job
end

begin_to_write()
local answers = {}
local done = {}
for number, job in ipairs(found) do
  local id, state = ARGV[number + 3], job[STATE]
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
