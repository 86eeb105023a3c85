-- Whether a job stands where its record says, for audits and repairs. Needs the fragments `record`, `place` and `parked`.
local held = {}
local is_vanished = {}
for _, worker in ipairs(redis.call('SMEMBERS', prefix .. 'vanished')) do
  is_vanished[worker] = true
end

-- Whether a worker's own list has the job; the list is read once.
local function is_held(worker, id)
  if not held[worker] then
    held[worker] = {}
    for _, each in ipairs(redis.call('SMEMBERS', prefix .. 'running:' .. worker)) do
      held[worker][each] = true
    end
  end
  return held[worker][id]
end

local function is_known(worker)
  return is_vanished[worker] or redis.call('ZSCORE', prefix .. 'workers', worker)
    or redis.call('ZSCORE', prefix .. 'registered', worker)
end

-- The line that a job belongs in, its member there, and its score; nil for a state that has none of its own.
local function line_for(job, id)
  local state = job[STATE]
  if state == 'ready' then
    local line = 'ready:' .. lane_of(job) .. ':' .. job[QUEUE]
    return line, place_of(job[RUN_AT], id), -tonumber(job[PRIORITY])
  elseif state == 'waiting' then
    return 'waiting', place_of(job[RUN_AT], id), 0
  elseif state == 'dead' or state == 'cancelled' then
    return state, id, 0
  end
  return nil
end

-- What is wrong: `no line`, `no worker`, `not held`, `set aside`, or nil.
local function fault_of(job, id)
  if job[STATE] == 'running' then
    if job[WORKER] == '' then
      return 'no worker'
    end
    return not is_held(job[WORKER], id) and 'not held' or not is_known(job[WORKER]) and 'not known' or nil
  end
  if job[STATE] == 'dead' and job[REASON] == '=damaged' then
    return 'set aside'
  end
  local line, member = line_for(job, id)
  if line and not redis.call('ZSCORE', prefix .. line, member) then
    return 'no line'
  end
  if job[STATE] == 'waiting' and job[REASON] == '=parked'
    and not redis.call('ZSCORE', prefix .. 'parked:' .. job[QUEUE], parked_member(job[TASK], id))
  then
    return 'not parked'
  end
  return nil
end
