-- reap: strikes off vanished workers, and shows running jobs that have no living worker.
-- KEYS: the store's prefix.
-- ARGV: now, sender, limit (of jobs), most (of workers struck off in one call), is_judged ('1': the caller says whom to strike
--     off; '': those whose lease has run out by the store's clock); then per worker to strike off its id and beat_at, which
--     must still be its newest.
-- Returns: the workers struck off; of the jobs the ids, the records, the args, and the errors; now; and of each registered
--     worker its id, beat_at ('0' if unknown) and the end of its lease.
-- Guarantees: any worker may run it; a worker is struck off once. The commit of what is decided about a job is fenced.
--+ start
--+ many
--+ room
expect('zset', 'workers')
expect('set', 'vanished')
local function beat_at(worker)
  return redis.call('HGET', prefix .. 'worker:' .. worker, 'beat_at') or '0'
end

local expired = {}
if ARGV[5] == '1' then
  for at = 6, #ARGV, 2 do
    local worker = ARGV[at]
    expect('hash', 'worker:' .. worker)
    if redis.call('ZSCORE', prefix .. 'workers', worker) and beat_at(worker) == ARGV[at + 1] then
      expired[#expired + 1] = worker
    end
  end
else
  expired = redis.call('ZRANGEBYSCORE', prefix .. 'workers', '-inf', now_text, 'LIMIT', 0, ARGV[4])
end
if #expired > 0 then
  begin_to_write()
end
for _, worker in ipairs(expired) do
  redis.call('ZREM', prefix .. 'workers', worker)
  redis.call('DEL', prefix .. 'worker:' .. worker)
  if redis.call('EXISTS', prefix .. 'running:' .. worker) == 1 then
    redis.call('SADD', prefix .. 'vanished', worker)
  end
end

local ids = {}
local left = tonumber(ARGV[3])
if left > 0 then
  for _, worker in ipairs(redis.call('SRANDMEMBER', prefix .. 'vanished', left)) do
    for _, id in ipairs(redis.call('SMEMBERS', prefix .. 'running:' .. worker)) do
      if #ids == left then
        break
      end
      ids[#ids + 1] = id
    end
    if #ids == left then
      break
    end
  end
end
local renewals = {}
local living = redis.call('ZRANGE', prefix .. 'workers', 0, -1, 'WITHSCORES')
for at = 1, #living, 2 do
  renewals[#renewals + 1] = {living[at], beat_at(living[at]), text(tonumber(living[at + 1]))}
end
return {
  expired, ids, read_many(prefix .. 'records', ids), read_many(prefix .. 'args', ids), read_many(prefix .. 'errors', ids),
  now_text, renewals
}
