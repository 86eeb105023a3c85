-- reap: strikes off vanished workers, and shows running jobs that have no living worker.
-- KEYS: the store's prefix.
-- ARGV: now, sender, limit (of jobs), most (of workers struck off in one call), is_judged ('1': the caller says whom to strike
--     off; '': those whose lease has run out by the store's clock); then per worker to strike off its id and beat_at, which
--     must still be its newest.
-- Returns: the workers struck off; of the jobs the workers, the ids, the records, the args, and the errors; now; and of each
--     registered worker its id, beat_at ('0' if unknown) and the end of its lease.
-- Guarantees: any worker may run it; a worker is struck off once. The commit of what is decided about a job is fenced. Workers
--     are found after the key `workers` was deleted, too; those that are not struck off are put back.
--+ start
--+ many
--+ room
--+ lease
expect('zset', 'workers', 'registered')
expect('set', 'vanished')
expect('hash', 'records', 'args', 'errors')
local function beat_at(worker)
  return redis.call('HGET', prefix .. 'worker:' .. worker, 'beat_at') or '0'
end

local expired = {}
local is_expired = {}
local function expire(worker)
  if not is_expired[worker] then
    is_expired[worker] = true
    expired[#expired + 1] = worker
  end
end
if ARGV[5] == '1' then
  for at = 6, #ARGV, 2 do
    local worker = ARGV[at]
    expect('hash', 'worker:' .. worker)
    if lease_of(worker) and beat_at(worker) == ARGV[at + 1] then
      expire(worker)
    end
  end
else
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'workers', '-inf', now_text, 'LIMIT', 0, ARGV[4])) do
    expire(worker)
  end
end
local put_back = {}
if redis.call('ZCARD', prefix .. 'registered') ~= redis.call('ZCARD', prefix .. 'workers') then
  local leases = redis.call('ZRANGE', prefix .. 'registered', 0, -1, 'WITHSCORES')
  for at = 1, #leases, 2 do
    local worker, lease = leases[at], tonumber(leases[at + 1])
    if not redis.call('ZSCORE', prefix .. 'workers', worker) and not is_expired[worker] then
      if ARGV[5] == '1' or lease > now then
        put_back[#put_back + 1] = text(lease)
        put_back[#put_back + 1] = worker
      else
        expire(worker)
      end
    end
  end
end

-- Whose jobs to show: looked at before the first write, as these keys may hold something else.
local left = tonumber(ARGV[3])
local holders = left > 0 and redis.call('SRANDMEMBER', prefix .. 'vanished', left) or {}
for _, worker in ipairs(expired) do
  holders[#holders + 1] = worker
end
local ids = {}
local of = {}
local seen = {}
for _, worker in ipairs(holders) do
  expect('set', 'running:' .. worker)
  if #ids < left and not seen[worker] then
    seen[worker] = true
    for _, id in ipairs(redis.call('SMEMBERS', prefix .. 'running:' .. worker)) do
      if #ids == left then
        break
      end
      ids[#ids + 1] = id
      of[#of + 1] = worker
    end
  end
end
local renewals = {}
local function show(worker, lease)
  if not is_expired[worker] then
    expect('hash', 'worker:' .. worker)
    renewals[#renewals + 1] = {worker, beat_at(worker), text(tonumber(lease))}
  end
end
local living = redis.call('ZRANGE', prefix .. 'workers', 0, -1, 'WITHSCORES')
for at = 1, #living, 2 do
  show(living[at], living[at + 1])
end
for at = 1, #put_back, 2 do
  show(put_back[at + 1], put_back[at])
end

if #expired > 0 or #put_back > 0 then
  begin_to_write()
end
write_many('ZADD', prefix .. 'workers', put_back)
for _, worker in ipairs(expired) do
  redis.call('ZREM', prefix .. 'workers', worker)
  redis.call('ZREM', prefix .. 'registered', worker)
  redis.call('DEL', prefix .. 'worker:' .. worker)
  if redis.call('EXISTS', prefix .. 'running:' .. worker) == 1 then
    redis.call('SADD', prefix .. 'vanished', worker)
  end
end
return {
  expired, of, ids, read_many(prefix .. 'records', ids), read_many(prefix .. 'args', ids), read_many(prefix .. 'errors', ids),
  now_text, renewals
}
