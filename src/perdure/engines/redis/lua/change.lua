-- change: makes waiting or ready jobs due at another time, come before others, stand in another queue, try more or less, or
--     run with other arguments.
-- KEYS: the store's prefix.
-- ARGV: now, sender, delay, run_at, priority, queue, max_attempts, delivery, args, long args; then ids. Of delay and run_at at
--     most one is not ''; what follows them is '' for as it is, else '=' and it; '=' alone takes max_attempts back, or means
--     at_least_once. Of args and long args one is given, or none for as they are.
-- Returns: for each id `changed`, `wrong state` or `not found`.
-- Guarantees: a job that a worker has claimed is left as it is; one that is changed is claimed as it then is.
--+ start
--+ many
--+ record
--+ given
--+ counts
--+ lines
--+ parked
--+ room
local FIRST = 11
local run_at
if ARGV[3] ~= '' then
  run_at = after(ARGV[3])
elseif ARGV[4] ~= '' then
  run_at = ARGV[4]
end
local priority, queue, limit, delivery = given(ARGV[5]), given(ARGV[6]), given(ARGV[7]), given(ARGV[8])
local args, long_args = ARGV[9], given(ARGV[10])
expect('zset', 'waiting')
expect('hash', 'records', 'counts', 'args')
if priority and (not tonumber(priority) or math.abs(tonumber(priority)) > 100) then
  return redis.error_reply('PERDURE A priority is a whole number from -100 to 100.')
end

local function is_open(job)
  return job[STATE] == 'waiting' or job[STATE] == 'ready'
end

local function change(id, job)
  local lane = lane_of(job)
  leave(job[STATE], lane, job[QUEUE], job[RUN_AT], id)
  leave_parked(job[PARKED_AT], job[TASK], job[QUEUE], id)
  count(job[STATE], lane, job[QUEUE], -1)
  if run_at then
    job[STATE], job[RUN_AT] = tonumber(run_at) <= now and 'ready' or 'waiting', run_at
  end
  if queue and queue ~= job[QUEUE] then
    job[QUEUE], job[ORIGIN] = queue, ''
  end
  job[PRIORITY] = priority or job[PRIORITY]
  job[MAX_ATTEMPTS] = limit or job[MAX_ATTEMPTS]
  job[DELIVERY] = delivery or job[DELIVERY]
  if long_args then
    job[ARGS] = ''
    redis.call('HSET', prefix .. 'args', id, long_args)
  elseif args ~= '' then
    job[ARGS] = args
    redis.call('HDEL', prefix .. 'args', id)
  end
  write_job(id, job)
  count(job[STATE], lane, job[QUEUE], 1)
  stand(job[STATE], lane, job[QUEUE], tonumber(job[PRIORITY]), job[RUN_AT], id)
  if job[STATE] == 'waiting' and job[REASON] == '=parked' and job[PARKED_AT] ~= '' then
    redis.call('ZADD', prefix .. 'parked:' .. job[QUEUE], 0, parked_member(job[TASK], id))
  end
end

for at = FIRST, #ARGV do
  local job = read_job(ARGV[at])
  if is_open(job) then
    local line = 'ready:' .. lane_of(job) .. ':'
    expect('zset', line .. job[QUEUE], line .. (queue or job[QUEUE]))
    expect_parked(job)
    if job[PARKED_AT] ~= '' then
      expect('zset', 'parked:' .. (queue or job[QUEUE]))
    end
  end
end

begin_to_write()
local answers = {}
local done = {}
for at = FIRST, #ARGV do
  local id = ARGV[at]
  local job = read_job(id)
  local answer = job[STATE] and 'wrong state' or 'not found'
  -- [INV-23] Only what has not started is changed.
  if is_open(job) then
    answer = 'changed'
    if not done[id] then
      change(id, job)
      done[id] = true
    end
  end
  answers[#answers + 1] = answer
end
write_lines()
write_counts()
tell_news()
return answers
