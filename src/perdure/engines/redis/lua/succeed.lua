-- succeed: writes what follows first attempts of one worker that all succeeded; commit does the same for any batch.
-- KEYS: the store's prefix.
-- ARGV: now, sender, fence (as commit takes it), worker; then the ids, each another one, in one text of 36 bytes an id; then the
--     heads, as commit takes them, in one text, each ended by byte 254. A text for all is cheaper to read than one for each.
-- Returns: how many were written: all of them, or none when one is not the current attempt of its job, or has a byte 254 inside.
-- Guarantees: what commit guarantees. If one is not the current attempt, nothing is written, and commit is to tell which.
--+ start
--+ record
--+ running
--+ counts
--+ unique
--+ unfinished
--+ ended
--+ room
local fence, worker, joined, heads = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local WIDTH = 36
expect('zset', 'ended')
expect('set', 'vanished')
expect('set', 'running:' .. worker)
expect('set', 'cancelling:' .. worker)

-- What nearly every record has after its fence: started_at in so many digits, then nothing of note up to the lane, and no unique
-- key and no schedule after the queue. REST is for the others.
local DIGITS = 16
local USUAL = string.rep('\255', FAILURES - STARTED_AT) .. '0\2550' .. string.rep('\255', LANE - RECOVERIES)
local PLAIN = '^\255([^\255]*)\255\255\255'
local sub, find, match, size = string.sub, string.find, string.match, #fence
local after_start = size + DIGITS + 1
local usual_rest = after_start + #USUAL
local beginning = now_text .. END

local ids = {}
for first = 1, #joined, WIDTH do
  ids[#ids + 1] = sub(joined, first, first + WIDTH - 1)
end

local written = {}
local tally = {}
local odd = {}

-- What is to be done beside about a job that has more than a plain one; gives where its record goes on, and its line.
local function look_at(id, record)
  local is_cancelling, rest, lane, queue, unique, schedule, task = match(record, REST, size + 1)
  if unique ~= '' then
    expect('hash', 'unique')
  end
  if schedule ~= '' then
    expect('set', unfinished_of(schedule))
  end
  odd[#odd + 1] = {id, is_cancelling, task, unique, schedule}
  return rest, (lane == '' and 'fresh:' or 'retry:') .. queue
end

local queue, line
local from = 1
for place, record in ipairs(redis.call('HMGET', prefix .. 'records', unpack(ids))) do
  local to = find(heads, '\254', from, true)
  -- [INV-3] A commit is accepted only from the current attempt of the job, by the worker that runs it.
  if not record or sub(record, 1, size) ~= fence or not to then
    return 0
  end
  local at, id, rest = 2 * place, ids[place], usual_rest
  local found = sub(record, after_start, rest - 1) == USUAL and match(record, PLAIN, rest)
  if not found then
    rest, line = look_at(id, record)
  elseif found ~= queue then
    line = 'fresh:' .. found
  end
  queue = found
  tally[line] = (tally[line] or 0) + 1
  written[at - 1], written[at] = id, sub(heads, from, to - 1) .. beginning .. sub(record, rest)
  from = to + 1
end
if from <= #heads then
  return 0
end
for line, number in pairs(tally) do
  count_line('running', line, -number)
  count_line('succeeded', line, number)
end

begin_to_write()
redis.call('HSET', prefix .. 'records', unpack(written))
end_together(ids)
redis.call('SREM', prefix .. 'running:' .. worker, unpack(ids))
for _, job in ipairs(odd) do
  if job[2] ~= '' then
    redis.call('SREM', prefix .. 'cancelling:' .. worker, job[1])
  end
  free_unique(job[3], job[4], job[1])
  finish(job[5], job[1])
end
-- A worker that is struck off and holds nothing more is forgotten.
if redis.call('EXISTS', prefix .. 'running:' .. worker) == 0 then
  redis.call('SREM', prefix .. 'vanished', worker)
end
write_counts()
return #ids
