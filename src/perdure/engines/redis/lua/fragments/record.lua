-- A job's record: its fields in this order, each ended by the byte 255, which no text in UTF-8 has. A field is '' where there
-- is nothing to say; reason, result, unique, schedule, origin, retry and args have a '=' before them, since they may be empty.
-- Results and args that are long are not in the record, but in hashes of their own.
local END = '\255'
local STATE, ATTEMPT, WORKER, STARTED_AT, IS_CANCELLING, REASON, FAILURES, RECOVERIES = 1, 2, 3, 4, 5, 6, 7, 8
local ATTEMPT_ENDED_AT, TOKEN, DELAY, PARKED_AT, FINGERPRINT, RESULT, ENDED_AT = 9, 10, 11, 12, 13, 14, 15
local LANE, QUEUE, UNIQUE, SCHEDULE, TASK, PRIORITY, RUN_AT, ORIGIN, REPLAYED_AT = 16, 17, 18, 19, 20, 21, 22, 23, 24
local CREATED_AT, MAX_ATTEMPTS, DELIVERY, ARGS = 25, 26, 28, 31
local WHOLE = '^' .. string.rep('([^\255]*)\255', 31) .. '$'

local STATES = {waiting = true, ready = true, running = true, succeeded = true, dead = true, cancelled = true}

-- The fields of a record; none of no record. One that cannot be read is set aside: to the scripts there is no such job.
local function fields_of(record)
  local job = record and {string.match(record, WHOLE)} or {}
  if not STATES[job[STATE] or ''] or not tonumber(job[ATTEMPT]) or not tonumber(job[PRIORITY])
    or not tonumber(job[RUN_AT]) or not tonumber(job[CREATED_AT])
    or (job[ENDED_AT] ~= '' and not tonumber(job[ENDED_AT]))
  then
    return {}
  end
  return job
end

local function read_job(id)
  return fields_of(redis.call('HGET', prefix .. 'records', id))
end

local function record_of(job)
  return table.concat(job, END) .. END
end

local function write_job(id, job)
  redis.call('HSET', prefix .. 'records', id, record_of(job))
end

local function lane_of(job)
  return job[LANE] == 'retry' and 'retry' or 'fresh'
end

-- The queue that a job was enqueued to.
local function home_of(job)
  return job[ORIGIN] ~= '' and string.sub(job[ORIGIN], 2) or job[QUEUE]
end
