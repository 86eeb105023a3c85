-- promote: makes waiting jobs that are due ready, the longest due first.
-- KEYS: the store's prefix.
-- ARGV: now, sender, limit.
-- Returns: how many became ready, the run_at of the next waiting job ('' when none waits), and now.
-- Guarantees: any worker may run it; a job is promoted once. Looks at no more than `limit` jobs. A place whose record is not
--     there or cannot be read goes, so that it stops nobody; the record stays.
--+ start
--+ many
--+ record
--+ counts
--+ lines
--+ parked
--+ room
expect('zset', 'waiting')
expect('hash', 'counts')
-- [INV-16] Nothing becomes ready before its run_at, by the store's clock.
local last = '(' .. place_of(text(now + 1), '')
local places = redis.call('ZRANGEBYLEX', prefix .. 'waiting', '-', last, 'LIMIT', 0, ARGV[3])
-- Where a waiting job goes on after its state, and its parked_at, lane, queue, task and priority.
local WAITING = '^waiting()\255' .. string.rep('[^\255]*\255', PARKED_AT - 2) .. '([^\255]*)\255'
  .. string.rep('[^\255]*\255', LANE - PARKED_AT - 1) .. '([^\255]*)\255([^\255]*)\255'
  .. string.rep('[^\255]*\255', TASK - QUEUE - 1) .. '([^\255]*)\255(-?%d+)\255'
  .. string.rep('[^\255]*\255', ARGS - PRIORITY) .. '$'
local ids = {}
for number, place in ipairs(places) do
  ids[number] = string.sub(place, 20)
end

local written = {}
local tally = {}
local parked = {}
for number, record in ipairs(read_many(prefix .. 'records', ids)) do
  local rest, parked_at, lane, queue, task, priority = string.match(record or '', WAITING)
  if rest then
    if parked_at ~= '' then
      expect('zset', 'parked:' .. queue)
      parked[#parked + 1] = {parked_at, task, queue, ids[number]}
    end
    local line = (lane == '' and 'fresh:' or 'retry:') .. queue
    local members = line_of('ready', lane == '' and 'fresh' or lane, queue)
    local at, to = #written + 1, #members + 1
    written[at], written[at + 1] = ids[number], 'ready' .. string.sub(record, rest)
    -- In both lines a job's place looks the same.
    members[to], members[to + 1] = -priority, places[number]
    tally[line] = (tally[line] or 0) + 1
  end
end
for line, number in pairs(tally) do
  count_line('waiting', line, -number)
  count_line('ready', line, number)
end

if #ids > 0 then
  begin_to_write()
end
write_many('ZREM', prefix .. 'waiting', places)
for _, each in ipairs(parked) do
  leave_parked(unpack(each))
end
write_many('HSET', prefix .. 'records', written)
write_lines()
write_counts()
tell_news()
-- The record tells moments before 1970, too; where it cannot be read, the place does.
local first = redis.call('ZRANGE', prefix .. 'waiting', 0, 0)[1]
local next_run_at = first and (read_job(string.sub(first, 20))[RUN_AT] or string.match(first, '^0*(%d+):'))
return {#written / 2, next_run_at or '', now_text}
