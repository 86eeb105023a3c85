-- retry: makes waiting, dead or cancelled jobs ready now; for dead and cancelled ones failures start again at 0.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then ids.
-- Returns: for each id `replayed`, `wrong state`, `unique key busy` or `not found`.
-- Guarantees: jobs are done one after the other, so of two with one unique key the first comes back.
--+ start
--+ many
--+ record
--+ counts
--+ lines
--+ parked
--+ unique
--+ unfinished
--+ forwards
--+ put_back
--+ room
expect('zset', 'waiting', 'dead', 'cancelled', 'ended')
expect('hash', 'records', 'counts', 'unique')

local function make_ready(id, job)
  local lane, queue = lane_of(job), job[QUEUE]
  leave('waiting', lane, queue, job[RUN_AT], id)
  leave_parked(job[PARKED_AT], job[TASK], queue, id)
  job[STATE], job[RUN_AT] = 'ready', now_text
  write_job(id, job)
  count('waiting', lane, queue, -1)
  count('ready', lane, queue, 1)
  stand('ready', lane, queue, tonumber(job[PRIORITY]), now_text, id)
end

for at = 3, #ARGV do
  local job = read_job(ARGV[at])
  if job[STATE] then
    local home = home_of(job)
    expect('zset', 'ready:fresh:' .. home, 'ready:retry:' .. home, 'ready:retry:' .. job[QUEUE], 'ready:fresh:' .. job[QUEUE])
    expect_forward(ARGV[at], home)
    expect_parked(job)
    if job[SCHEDULE] ~= '' then
      expect('set', unfinished_of(job[SCHEDULE]))
    end
  end
end

begin_to_write()
local answers = {}
for at = 3, #ARGV do
  local id = ARGV[at]
  local job = read_job(id)
  local state = job[STATE]
  local answer = 'wrong state'
  if not state then
    answer = 'not found'
  elseif state == 'waiting' then
    make_ready(id, job)
    answer = 'replayed'
  elseif state == 'dead' or state == 'cancelled' then
    answer = put_back(id, job, now_text) and 'replayed' or 'unique key busy'
  end
  answers[#answers + 1] = answer
end
write_lines()
write_counts()
write_forward_counts()
tell_news()
return answers
