-- fetch: claims ready jobs for a worker, going through the wants in their order.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker, limit; then per want queue, count, share and carry (in millionths), is_strict ('1' or ''),
--     max_retries_running and concurrency ('' for none).
-- Returns: nil when the worker was struck off; else now; the ids of the jobs claimed, line by line and in order; the
--     record of each, as it was before the claim (nil where there was none to claim); id and args of each whose args are not
--     in the record; id and error of each that has one; the number of lines claimed from; and the room offered to each want,
--     0 where nothing could be claimed.
-- Guarantees: nothing else runs meanwhile, so a job is claimed by one worker only, and pauses and limits are exact. Jobs
--     are read before the first write. Looks at no more jobs than it claims.
--+ start
--+ many
--+ counts
--+ lines
--+ paused
--+ room
--+ lease
local worker, limit = ARGV[3], tonumber(ARGV[4])
expect('set', 'running:' .. worker)
if not lease_of(worker) then
  return false
end

local sub = string.sub
local ids = {}
local parts = {}
local taken = {}
local chosen = 0

local function available(line)
  return redis.call('ZCARD', line) - (taken[line] or 0)
end

local function choose(lane, queue, number)
  if number > 0 then
    local line = ready_line(lane, queue)
    local first = taken[line] or 0
    local before = #ids
    parts[#parts + 1] = {lane, queue, before + 1, before + number}
    for at, place in ipairs(redis.call('ZRANGE', line, first, first + number - 1)) do
      ids[before + at] = sub(place, 20)
    end
    taken[line] = first + number
    chosen = chosen + number
  end
end

-- How many jobs of a lane run or are about to: nothing else runs meanwhile, and no counter is kept that could leak.
local function running(lane, queue)
  local counted = redis.call('HGET', prefix .. 'counts', 'running:' .. lane .. ':' .. queue) or '0'
  return (tonumber(counted) or 0) + (taken[ready_line(lane, queue)] or 0)
end

local rooms = {}
local is_short = {}
-- The queues that may have more to give than there was room for, and how many jobs each of those asked has left.
local may_have_more = {}
local stock = {}

-- Chooses what a want gets of its room; gives false when there is nothing that it could be given.
local function serve(queue, room, share, carry, is_strict, cap)
  local freshes, retries = available(ready_line('fresh', queue)), available(ready_line('retry', queue))
  local all = freshes + retries
  if cap ~= '' then
    -- [INV-10] Nothing else runs while this is counted, so that the cap is exact over all workers.
    retries = math.min(retries, math.max(0, tonumber(cap) - running('retry', queue)))
  end
  local retry = math.floor((carry + room * share) / 1000000)
  local can_give = freshes + retries > 0
  if is_strict then
    freshes, retries = math.min(room - retry, freshes), math.min(retry, retries)
  else
    retries = math.max(math.min(retry, retries), math.min(room - freshes, retries))
    freshes = math.min(room - retries, freshes)
  end
  is_short[queue] = freshes + retries < room
  may_have_more[queue] = not is_short[queue] or nil
  stock[queue] = all - freshes - retries
  choose('fresh', queue, freshes)
  choose('retry', queue, retries)
  return can_give
end

for at = 5, #ARGV, 7 do
  local queue, concurrency = ARGV[at], ARGV[at + 6]
  local room = math.min(tonumber(ARGV[at + 1]), limit - chosen)
  if chosen == limit and not is_short[queue] then
    may_have_more[queue] = true
  end
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
local records = read_many(prefix .. 'records', ids)
local errors = {}
for _, part in ipairs(parts) do
  -- What never ran has no error.
  if part[1] == 'retry' then
    local again = {unpack(ids, part[3], part[4])}
    for number, failure in ipairs(read_many(prefix .. 'errors', again)) do
      if failure then
        errors[#errors + 1] = again[number]
        errors[#errors + 1] = failure
      end
    end
  end
end

if #ids == 0 then
  return {now_text, {}, {}, {}, {}, 0, rooms}
end
local args = {}
local held = {}
local written = {}
local claim = '\255' .. worker .. '\255' .. now_text .. '\255'
-- Most jobs are claimed for the first time, and all those alike: their records are not taken apart.
local first_claim = 'running\2551' .. claim
-- [INV-5] An at-most-once job has not started until start.lua says so: its started_at stays empty. A queue or task may have
-- the same name, so the field is looked for at its place only where the word is there at all.
local unstarted = '\255' .. worker .. '\255\255'
local AT_MOST_ONCE, DELIVERY = '\255at_most_once\255', '\255at_most_once\255[^\255]*\255[^\255]*\255[^\255]*\255$'
local find = string.find
local beginning = '^ready\255(%d+)\255[^\255]*\255[^\255]*\255()'
local never_ran = 'ready\2550\255\255\255'
local size = #never_ran
local byte = string.byte
local at = 0
for _, part in ipairs(parts) do
  local number = 0
  for place = part[3], part[4] do
    local id, record = ids[place], records[place]
    -- [INV-4] The only place that writes an attempt's number.
    local attempt, changed
    local is_at_most_once = record and find(record, AT_MOST_ONCE, size, true) and find(record, DELIVERY)
    if record and not is_at_most_once and sub(record, 1, size) == never_ran then
      attempt, changed = '1', first_claim .. sub(record, size + 1)
    else
      local ran, rest = string.match(record or '', beginning)
      if ran then
        attempt = ran + 1
        changed = 'running\255' .. attempt .. (is_at_most_once and unstarted or claim) .. sub(record, rest)
      end
    end
    if attempt then
      written[at + 1], written[at + 2] = id, changed
      at, number = at + 2, number + 1
      held[#held + 1] = id
      -- The args are the last field: is it empty?
      if byte(record, -2) == 255 then
        args[#args + 1] = id
        args[#args + 1] = redis.call('HGET', prefix .. 'args', id)
      end
    else
      records[place] = false
    end
  end
  count('ready', part[1], part[2], part[3] - part[4] - 1)
  count('running', part[1], part[2], number)
end

begin_to_write()
local sources = 0
for line, number in pairs(taken) do
  redis.call('ZREMRANGEBYRANK', line, 0, number - 1)
  sources = sources + 1
end
write_many('HSET', prefix .. 'records', written)
write_many('SADD', prefix .. 'running:' .. worker, held)
write_counts()
-- Whoever was called for what this claim has left is called again; nobody is for what it has taken.
for queue in pairs(may_have_more) do
  if stock[queue] ~= 0 and has_ready(queue) then
    ring(queue)
  end
end
for queue, number in pairs(stock) do
  if number == 0 then
    redis.call('DEL', prefix .. 'bell:' .. queue)
  end
end
return {now_text, ids, records, args, errors, sources, rooms}
