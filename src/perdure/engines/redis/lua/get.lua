-- get: the jobs of a list of ids.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then ids.
-- Returns: for each its fields; none when the job does not exist.
-- Guarantees: reads only; one picture of all.
--+ start
local jobs = {}
for at = 3, #ARGV do
  jobs[#jobs + 1] = redis.call('HGETALL', prefix .. 'job:' .. ARGV[at])
end
return jobs
