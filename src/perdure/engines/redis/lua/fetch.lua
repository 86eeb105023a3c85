-- fetch: claims ready jobs for a worker, going through the wants in their order.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker, limit; then per want queue, count, share and carry (in millionths), is_strict ('1' or ''),
--     max_retries_running and concurrency ('' for none).
-- Returns: nil when the worker's lease does not hold; else id, fields (as HGETALL gives them) of each job claimed, and the
--     room offered to each want, 0 where nothing could be claimed.
-- Guarantees: nothing else runs meanwhile, so a job is claimed by one worker only, and pauses and limits are exact. Jobs
--     are read before the first write. Looks at no more jobs than it claims.
--+ start
--+ counts
--+ lines
--+ paused
--+ room
local worker, limit = ARGV[3], tonumber(ARGV[4])
expect('hash', 'counts', 'paused', 'paused_until', 'running:' .. worker)
local lease = redis.call('ZSCORE', prefix .. 'workers', worker)
if not lease or tonumber(lease) <= now then
  return false
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

-- How many jobs of a lane run or are about to: nothing else runs meanwhile, and no counter is kept that could leak.
local function running(lane, queue)
  local counted = redis.call('HGET', prefix .. 'counts', 'running:' .. lane .. ':' .. queue) or '0'
  return tonumber(counted) + (taken[ready_line(lane, queue)] or 0)
end

local rooms = {}
local is_short = {}

-- Chooses what a want gets of its room; gives false when there is nothing that it could be given.
local function serve(queue, room, share, carry, is_strict, cap)
  local freshes, retries = available(ready_line('fresh', queue)), available(ready_line('retry', queue))
  if cap ~= '' then
    -- [INV-10] Nothing else runs while this is counted, so that the cap is exact over all workers.
    retries = math.min(retries, math.max(0, tonumber(cap) - running('retry', queue)))
  end
  local can_give = freshes + retries > 0
  local retry = math.floor((carry + room * share) / 1000000)
  if is_strict then
    freshes, retries = math.min(room - retry, freshes), math.min(retry, retries)
  else
    retries = math.max(math.min(retry, retries), math.min(room - freshes, retries))
    freshes = math.min(room - retries, freshes)
  end
  is_short[queue] = freshes + retries < room
  choose('fresh', queue, freshes)
  choose('retry', queue, retries)
  return can_give
end

for at = 5, #ARGV, 7 do
  local queue, concurrency = ARGV[at], ARGV[at + 6]
  local room = math.min(tonumber(ARGV[at + 1]), limit - #chosen)
  if room > 0 and concurrency ~= '' then
    -- [INV-17] Nothing else runs while this is counted, so that the limit is exact over all workers.
    room = math.min(room, tonumber(concurrency) - running('fresh', queue) - running('retry', queue))
  end
  -- [INV-13] A paused queue gives nothing, in either lane.
  if room <= 0 or is_short[queue] or is_paused(queue)
    or not serve(queue, room, tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), ARGV[at + 4] == '1', ARGV[at + 5])
  then
    room = 0
  end
  rooms[#rooms + 1] = room
end

-- What is claimed is looked at before anything is written: a key of another kind stops the script here.
for _, claim in ipairs(chosen) do
  claim[4] = redis.call('HGET', prefix .. 'job:' .. claim[1], 'state') == 'ready'
end

if #chosen == 0 then
  return {{}, rooms}
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
return {claimed, rooms}
