-- promote: makes waiting jobs that are due ready, the longest due first.
-- KEYS: the store's prefix.
-- ARGV: now, sender, limit.
-- Returns: how many became ready, and the run_at of the next waiting job ('' when none waits).
-- Guarantees: any worker may run it; a job is promoted once. Looks at no more than `limit` jobs.
--+ start
--+ many
--+ record
--+ counts
--+ lines
--+ room
expect('zset', 'waiting')
expect('hash', 'counts')
-- [INV-16] Nothing becomes ready before its run_at, by the store's clock.
local last = '(' .. place(text(now + 1), '')
local places = redis.call('ZRANGEBYLEX', prefix .. 'waiting', '-', last, 'LIMIT', 0, ARGV[3])
local ids = {}
for number, place in ipairs(places) do
  ids[number] = string.sub(place, 20)
end

local written = {}
for number, record in ipairs(read_many(prefix .. 'records', ids)) do
  local job = fields_of(record)
  if job[STATE] == 'waiting' then
    local id, lane, queue = ids[number], lane_of(job), job[QUEUE]
    job[STATE] = 'ready'
    written[#written + 1] = id
    written[#written + 1] = record_of(job)
    count('waiting', lane, queue, -1)
    count('ready', lane, queue, 1)
    stand('ready', lane, queue, tonumber(job[PRIORITY]), job[RUN_AT], id)
  end
end

if #ids > 0 then
  begin_to_write()
end
write_many('ZREM', prefix .. 'waiting', places)
write_many('HSET', prefix .. 'records', written)
write_lines()
write_counts()
tell_news()
local first = redis.call('ZRANGE', prefix .. 'waiting', 0, 0)[1]
return {#written / 2, first and read_job(string.sub(first, 20))[RUN_AT] or ''}
