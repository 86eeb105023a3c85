-- Puts an ended job back into the queue that it came from, failures starting again at 0.
-- Whatever was to be forwarded of it is so no more. Needs the fragments `record`, `unfinished` and `forwards`.
-- Gives false when a live job holds its unique key: then nothing has changed.
local function put_back(id, job, run_at)
  local state, queue, was_in = job[STATE], job[QUEUE], lane_of(job)
  if job[UNIQUE] ~= '' then
    local field = unique_field(job[TASK], job[UNIQUE])
    if redis.call('HEXISTS', prefix .. 'unique', field) == 1 then
      return false
    end
    redis.call('HSET', prefix .. 'unique', field, id)
  end
  local lane = job[ATTEMPT] ~= '0' and 'retry' or 'fresh'
  job[QUEUE] = home_of(job)
  job[STATE] = tonumber(run_at) <= now and 'ready' or 'waiting'
  job[RUN_AT], job[REPLAYED_AT], job[LANE] = run_at, run_at, lane == 'retry' and lane or ''
  job[FAILURES], job[RECOVERIES] = '0', '0'
  for _, field in ipairs({ORIGIN, REASON, FINGERPRINT, DELAY, PARKED_AT, ENDED_AT}) do
    job[field] = ''
  end
  write_job(id, job)
  redis.call('ZREM', prefix .. state, id)
  if job[SCHEDULE] ~= '' then
    redis.call('SADD', prefix .. unfinished_of(job[SCHEDULE]), id)
  end
  forget_forward(id)
  if state == 'cancelled' then
    redis.call('ZREM', prefix .. 'ended', id)
  end
  count(state, was_in, queue, -1)
  count(job[STATE], lane, job[QUEUE], 1)
  stand(job[STATE], lane, job[QUEUE], tonumber(job[PRIORITY]), run_at, id)
  return true
end
