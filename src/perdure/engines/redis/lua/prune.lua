-- prune: deletes succeeded and cancelled jobs that ended long ago, oldest first, with their history; expired notes; and
--     pauses that have ended by themselves.
-- KEYS: the store's prefix.
-- ARGV: now, sender, age (microseconds), limit.
-- Returns: how many were deleted.
-- Guarantees: any worker may run it. Dead and live jobs are in no line that it reads. Deletes no more than `limit` jobs.
--+ start
--+ many
--+ record
--+ counts
--+ forget_notes
--+ ended
expect('zset', 'ended', 'jobs', 'cancelled')
expect('zset', 'notes_expiring')
expect('hash', 'records', 'args', 'errors', 'results', 'counts', 'notes', 'paused', 'paused_until')
local expired = expired_notes()
-- [INV-14] Never dead or live jobs.
local before = text(now - tonumber(ARGV[3]))
local limit = tonumber(ARGV[4])
local ids = {}
local gone = {}
repeat
  local members = redis.call('ZRANGEBYSCORE', prefix .. 'ended', '-inf', before, 'LIMIT', #gone, STEP)
  for _, member in ipairs(members) do
    if #ids < limit then
      add_ids(ids, member)
      gone[#gone + 1] = member
    end
  end
until #members < STEP or #ids >= limit
-- Of the last member some may be too many: they stay.
local kept
if #ids > limit then
  kept = {redis.call('ZSCORE', prefix .. 'ended', gone[#gone]), table.concat(ids, ',', limit + 1)}
  ids = {unpack(ids, 1, limit)}
end
local with_history = {}
local pruned = {}
for number, record in ipairs(read_many(prefix .. 'records', ids)) do
  local job = fields_of(record)
  -- A job that is in another state, or whose record cannot be read, only leaves the line.
  if not record or job[STATE] == 'succeeded' or job[STATE] == 'cancelled' then
    pruned[#pruned + 1] = ids[number]
  end
  if job[STATE] == 'succeeded' or job[STATE] == 'cancelled' then
    count(job[STATE], lane_of(job), job[QUEUE], -1)
    -- A success at the first attempt has no history but itself.
    if job[STATE] ~= 'succeeded' or job[ATTEMPT] ~= '1' then
      with_history[#with_history + 1] = prefix .. 'attempts:' .. ids[number]
    end
  end
end
write_many('ZREM', prefix .. 'ended', gone)
if kept then
  redis.call('ZADD', prefix .. 'ended', unpack(kept))
end
for _, line in ipairs({'cancelled', 'jobs'}) do
  write_many('ZREM', prefix .. line, pruned)
end
for _, part in ipairs({'records', 'args', 'errors', 'results'}) do
  write_many('HDEL', prefix .. part, pruned)
end
for first = 1, #with_history, 4000 do
  redis.call('DEL', unpack(with_history, first, math.min(first + 3999, #with_history)))
end
local pauses = redis.call('HGETALL', prefix .. 'paused_until')
for at = 1, #pauses, 2 do
  if (tonumber(pauses[at + 1]) or math.huge) <= now then
    redis.call('HDEL', prefix .. 'paused', pauses[at])
    redis.call('HDEL', prefix .. 'paused_until', pauses[at])
  end
end
write_counts()
forget_notes(expired)
return #ids
