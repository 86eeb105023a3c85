-- unpark: claims parked jobs of tasks that the worker knows, before they are due.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker, limit, the number of tasks, the tasks; then per want queue, max_retries_running, concurrency
--     ('' for none).
-- Returns: now; and of the jobs claimed the ids, the records as they were before the claim, id and args of each whose args are
--     not in the record, and id and error of each that has one. Nothing where the worker's lease does not hold.
-- Guarantees: as fetch. Looks at no more jobs than it may claim, whatever else is parked.
--+ start
--+ many
--+ record
--+ counts
--+ parked
--+ place
--+ paused
--+ room
--+ lease
local worker, limit, tasks = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
expect('set', 'running:' .. worker)
local found = {}

local function running(lane, queue)
  return tonumber(redis.call('HGET', prefix .. 'counts', 'running:' .. lane .. ':' .. queue) or '0') or 0
end

local function look_at(queue, cap, concurrency)
  local line, left, retries = prefix .. 'parked:' .. queue, limit - #found, limit
  if concurrency ~= '' then
    -- [INV-17] Nothing else runs while this is counted, so that the limit is exact over all workers.
    left = math.min(left, tonumber(concurrency) - running('fresh', queue) - running('retry', queue))
  end
  if cap ~= '' then
    retries = tonumber(cap) - running('retry', queue)
  end
  for number = 1, tasks do
    if left <= 0 then
      return
    end
    local first = parked_member(ARGV[5 + number], '')
    for _, member in ipairs(redis.call('ZRANGEBYLEX', line, '[' .. first, '(' .. first .. '\255', 'LIMIT', 0, limit)) do
      local id = string.sub(member, #first + 1)
      local record = redis.call('HGET', prefix .. 'records', id)
      local job = fields_of(record)
      local is_parked = job[STATE] == 'waiting' and job[QUEUE] == queue and job[PARKED_AT] ~= ''
      local is_retry = is_parked and lane_of(job) == 'retry'
      if left > 0 and is_parked and not (is_retry and retries <= 0) then
        left, retries = left - 1, retries - (is_retry and 1 or 0)
        found[#found + 1] = {id, record, job, line, member}
      end
    end
  end
end

if lease_of(worker) then
  expect('zset', 'waiting')
  for at = 6 + tasks, #ARGV, 3 do
    -- [INV-13] A paused queue gives nothing, in either lane.
    if redis.call('EXISTS', prefix .. 'parked:' .. ARGV[at]) == 1 and not is_paused(ARGV[at]) then
      look_at(ARGV[at], ARGV[at + 1], ARGV[at + 2])
    end
  end
end

local ids, records, args, errors = {}, {}, {}, {}
for number, each in ipairs(found) do
  local id, job = each[1], each[3]
  ids[number], records[number] = id, each[2]
  if job[ARGS] == '' then
    args[#args + 1] = id
    args[#args + 1] = redis.call('HGET', prefix .. 'args', id)
  end
  local failure = redis.call('HGET', prefix .. 'errors', id)
  if failure then
    errors[#errors + 1] = id
    errors[#errors + 1] = failure
  end
end
if #found == 0 then
  return {now_text, ids, records, args, errors}
end

begin_to_write()
for _, each in ipairs(found) do
  local id, job = each[1], each[3]
  redis.call('ZREM', each[4], each[5])
  redis.call('ZREM', prefix .. 'waiting', place_of(job[RUN_AT], id))
  count('waiting', lane_of(job), job[QUEUE], -1)
  count('running', lane_of(job), job[QUEUE], 1)
  job[STATE], job[ATTEMPT], job[WORKER] = 'running', text(job[ATTEMPT] + 1), worker
  -- [INV-5] An at-most-once job has not started until start.lua says so.
  job[STARTED_AT] = job[DELIVERY] == 'at_most_once' and '' or now_text
  write_job(id, job)
end
write_many('SADD', prefix .. 'running:' .. worker, ids)
write_counts()
return {now_text, ids, records, args, errors}
