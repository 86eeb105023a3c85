-- fetch: claims ready jobs for a worker, going through the wants in their order.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker, limit; then per want queue, fresh, retry, is_strict ('1' or ''), max_retries_running ('' for
--     no cap).
-- Returns: nil when the worker's lease does not hold; else id, fields (as HGETALL gives them) of each job claimed.
-- Guarantees: nothing else runs meanwhile, so a job is claimed by one worker only, and pause and cap are exact. Jobs are
--     read before the first write. Looks at no more jobs than it claims.
--+ start
--+ counts
--+ lines
--+ room
local worker, limit = ARGV[3], tonumber(ARGV[4])
expect('hash', 'counts', 'paused', 'running:' .. worker)
local lease = redis.call('ZSCORE', prefix .. 'workers', worker)
if not lease or tonumber(lease) <= now then
  return false
end

-- How many fresh and retry jobs to ask for, both lanes cut alike when there is less room than wanted.
local function fit(fresh, retry, room)
  local wanted = fresh + retry
  if wanted <= room then
    return fresh, retry
  end
  retry = math.floor((2 * room * retry + wanted) / (2 * wanted))
  return room - retry, retry
end

local chosen = {}
local taken = {}

local function available(line)
  return redis.call('ZCARD', line) - (taken[line] or 0)
end

local function choose(lane, queue, number)
  if number > 0 then
    local line = ready_line(lane, queue)
    local first = taken[line] or 0
    for _, member in ipairs(redis.call('ZRANGE', line, first, first + number - 1)) do
      chosen[#chosen + 1] = {string.sub(member, 20), lane, queue}
    end
    taken[line] = first + number
  end
end

for at = 5, #ARGV, 5 do
  local queue = ARGV[at]
  local fresh, retry = math.max(0, tonumber(ARGV[at + 1])), math.max(0, tonumber(ARGV[at + 2]))
  fresh, retry = fit(fresh, retry, limit - #chosen)
  -- [INV-13] A paused queue gives nothing, in either lane.
  if fresh + retry > 0 and redis.call('HEXISTS', prefix .. 'paused', queue) == 0 then
    local fresh_line, retry_line = ready_line('fresh', queue), ready_line('retry', queue)
    local freshes, retries = available(fresh_line), available(retry_line)
    if ARGV[at + 4] ~= '' then
      -- [INV-10] Nothing else runs while this is counted, so that the cap is exact over all workers.
      local running = tonumber(redis.call('HGET', prefix .. 'counts', 'running:retry:' .. queue) or '0')
      running = running + (taken[retry_line] or 0)
      retries = math.min(retries, math.max(0, tonumber(ARGV[at + 4]) - running))
    end
    if ARGV[at + 3] == '1' then
      freshes, retries = math.min(fresh, freshes), math.min(retry, retries)
    else
      local whole = fresh + retry
      retries = math.max(math.min(retry, retries), math.min(whole - freshes, retries))
      freshes = math.min(whole - retries, freshes)
    end
    choose('fresh', queue, freshes)
    choose('retry', queue, retries)
  end
end

-- What is claimed is looked at before anything is written: a key of another kind stops the script here.
for _, claim in ipairs(chosen) do
  claim[4] = redis.call('HGET', prefix .. 'job:' .. claim[1], 'state') == 'ready'
end

if #chosen == 0 then
  return {}
end
begin_to_write()
for line, number in pairs(taken) do
  redis.call('ZREMRANGEBYRANK', line, 0, number - 1)
end
local claimed = {}
local held = {}
for _, claim in ipairs(chosen) do
  local id, lane, queue = claim[1], claim[2], claim[3]
  count('ready', lane, queue, -1)
  if claim[4] then
    local job = prefix .. 'job:' .. id
    -- [INV-4] The only place that writes an attempt's number.
    local attempt = redis.call('HINCRBY', job, 'attempt', 1)
    redis.call('HSET', job, 'state', 'running', 'worker', worker, 'started_at', now_text)
    count('running', lane, queue, 1)
    held[#held + 1] = id
    held[#held + 1] = attempt
    claimed[#claimed + 1] = id
    claimed[#claimed + 1] = redis.call('HGETALL', job)
  end
end
for first = 1, #held, 4000 do
  redis.call('HSET', prefix .. 'running:' .. worker, unpack(held, first, math.min(first + 3999, #held)))
end
write_counts()
return claimed
