-- reap: strikes off workers whose lease ran out, and shows running jobs that have no living worker.
-- KEYS: the store's prefix.
-- ARGV: now, sender, limit (of jobs), most (of workers struck off in one call).
-- Returns: the workers struck off; and of the jobs the ids, the records, the args, and the errors.
-- Guarantees: any worker may run it; a worker is struck off once. The commit of what is decided about a job is fenced.
--+ start
--+ many
--+ room
expect('zset', 'workers')
expect('set', 'vanished')
local expired = redis.call('ZRANGEBYSCORE', prefix .. 'workers', '-inf', now_text, 'LIMIT', 0, ARGV[4])
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
return {
  expired, ids, read_many(prefix .. 'records', ids), read_many(prefix .. 'args', ids), read_many(prefix .. 'errors', ids)
}
