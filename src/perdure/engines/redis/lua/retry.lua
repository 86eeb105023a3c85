-- retry: makes waiting, dead or cancelled jobs ready now; for dead and cancelled ones failures start again at 0.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then ids.
-- Returns: for each id `replayed`, `wrong state`, `unique key busy` or `not found`.
-- Guarantees: jobs are done one after the other, so of two with one unique key the first comes back.
--+ start
--+ counts
--+ lines
--+ unique
--+ forwards
--+ put_back
--+ room
expect('zset', 'waiting', 'dead', 'cancelled', 'ended')
expect('hash', 'counts', 'unique')

local function make_ready(id, lane, queue, priority, run_at)
  leave('waiting', lane, queue, run_at, id)
  redis.call('HSET', prefix .. 'job:' .. id, 'state', 'ready', 'run_at', now_text)
  count('waiting', lane, queue, -1)
  count('ready', lane, queue, 1)
  stand('ready', lane, queue, tonumber(priority or '0'), now_text, id)
end

for at = 3, #ARGV do
  local job = redis.call('HMGET', prefix .. 'job:' .. ARGV[at], 'queue', 'origin')
  if job[1] then
    local queue = job[2] or job[1]
    expect('zset', 'ready:fresh:' .. queue, 'ready:retry:' .. queue, 'ready:retry:' .. job[1], 'ready:fresh:' .. job[1])
    expect_forward(ARGV[at], queue)
  end
end

begin_to_write()
local answers = {}
for at = 3, #ARGV do
  local id = ARGV[at]
  local job = redis.call('HMGET', prefix .. 'job:' .. id, 'state', 'lane', 'queue', 'priority', 'run_at')
  local state = job[1]
  local answer = 'wrong state'
  if not state then
    answer = 'not found'
  elseif state == 'waiting' then
    make_ready(id, job[2] or 'fresh', job[3], job[4], job[5])
    answer = 'replayed'
  elseif state == 'dead' or state == 'cancelled' then
    answer = put_back(id, now_text) and 'replayed' or 'unique key busy'
  end
  answers[#answers + 1] = answer
end
write_lines()
write_counts()
write_forward_counts()
tell_news()
return answers
