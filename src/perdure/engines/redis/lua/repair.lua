-- repair: puts jobs where their records say.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then ids.
-- Returns: the ids of those that were repaired.
-- Guarantees: nothing else runs meanwhile, and each is looked at once more, so that a job that has moved on is left as it is. A job
--     that runs for no worker goes back into its queue with nothing counted; one whose worker is gone is shown by reap then.
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
--+ standing
--+ room
expect('zset', 'jobs', 'waiting', 'dead', 'cancelled', 'ended', 'workers', 'registered')
expect('hash', 'records', 'counts', 'unique')
expect('set', 'vanished')
local chosen = {}
local gone = {}
for at = 3, #ARGV do
  local id = ARGV[at]
  local record = redis.call('HGET', prefix .. 'records', id)
  local job = fields_of(record)
  local is_listed = redis.call('ZSCORE', prefix .. 'jobs', id)
  if job[STATE] then
    local home = home_of(job)
    expect('zset', 'ready:fresh:' .. job[QUEUE], 'ready:retry:' .. job[QUEUE], 'ready:fresh:' .. home, 'ready:retry:' .. home)
    expect('zset', 'parked:' .. job[QUEUE])
    expect_forward(id, home)
    if job[SCHEDULE] ~= '' then
      expect('set', unfinished_of(job[SCHEDULE]))
    end
    if job[WORKER] ~= '' then
      expect('set', 'running:' .. job[WORKER])
    end
    local fault = fault_of(job, id)
    if fault or not is_listed then
      chosen[#chosen + 1] = {id, job, fault}
    end
  elseif not record and is_listed then
    gone[#gone + 1] = id
  end
end

begin_to_write()
local done = {}
for _, each in ipairs(chosen) do
  local id, job, fault = each[1], each[2], each[3]
  redis.call('ZADD', prefix .. 'jobs', 0, id)
  local is_done = true
  if fault == 'no worker' then
    count('running', lane_of(job), job[QUEUE], -1)
    count('ready', lane_of(job), job[QUEUE], 1)
    job[STATE], job[STARTED_AT], job[IS_CANCELLING] = 'ready', '', ''
    write_job(id, job)
    stand('ready', lane_of(job), job[QUEUE], tonumber(job[PRIORITY]), job[RUN_AT], id)
  elseif fault == 'not held' or fault == 'not known' then
    redis.call('SADD', prefix .. 'running:' .. job[WORKER], id)
    if not is_known(job[WORKER]) then
      redis.call('SADD', prefix .. 'vanished', job[WORKER])
    end
  elseif fault == 'set aside' then
    redis.call('ZADD', prefix .. 'dead', 0, id)
    is_done = put_back(id, job, now_text)
  elseif fault == 'no line' and (job[STATE] == 'ready' or job[STATE] == 'waiting') then
    stand(job[STATE], lane_of(job), job[QUEUE], tonumber(job[PRIORITY]), job[RUN_AT], id)
  elseif fault == 'no line' then
    local line, member, score = line_for(job, id)
    redis.call('ZADD', prefix .. line, score, member)
  end
  if job[STATE] == 'waiting' and job[REASON] == '=parked' then
    redis.call('ZADD', prefix .. 'parked:' .. job[QUEUE], 0, parked_member(job[TASK], id))
  end
  if is_done then
    done[#done + 1] = id
  end
end
for _, id in ipairs(gone) do
  redis.call('ZREM', prefix .. 'jobs', id)
  done[#done + 1] = id
end
write_lines()
write_counts()
write_forward_counts()
tell_news()
return done
