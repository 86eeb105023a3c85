-- reap: strikes off workers whose lease ran out, and shows running jobs that have no living worker.
-- KEYS: the store's prefix.
-- ARGV: now, sender, limit (of jobs), most (of workers struck off in one call).
-- Returns: the workers struck off; and id, fields of each job.
-- Guarantees: any worker may run it; a worker is struck off once. The commit of what is decided about a job is fenced.
--+ start
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

local jobs = {}
local left = tonumber(ARGV[3])
if left > 0 then
  for _, worker in ipairs(redis.call('SRANDMEMBER', prefix .. 'vanished', left)) do
    for _, id in ipairs(redis.call('HKEYS', prefix .. 'running:' .. worker)) do
      if left == 0 then
        break
      end
      jobs[#jobs + 1] = id
      jobs[#jobs + 1] = redis.call('HGETALL', prefix .. 'job:' .. id)
      left = left - 1
    end
    if left == 0 then
      break
    end
  end
end
return {expired, jobs}
