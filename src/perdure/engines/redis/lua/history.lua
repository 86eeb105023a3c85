-- history: the records of a job's attempts, and the job, which keeps its last attempt while that runs or if it succeeded.
-- KEYS: the store's prefix.
-- ARGV: now, sender, id, limit.
-- Returns: the job's record (nil when it does not exist), and the newest records of its attempts, oldest first.
-- Guarantees: reads only; one picture of both.
--+ start
local limit = tonumber(ARGV[4])
local records = {}
if limit > 0 then
  records = redis.call('LRANGE', prefix .. 'attempts:' .. ARGV[3], -limit, -1)
end
return {redis.call('HGET', prefix .. 'records', ARGV[3]), records}
