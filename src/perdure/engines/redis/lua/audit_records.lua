-- audit: looks at some records for those of jobs that are not in the list of all jobs.
-- KEYS: the store's prefix.
-- ARGV: now, sender, cursor ('0' at first), about how many to look at.
-- Returns: the next cursor ('0' at the end), and the ids.
-- Guarantees: reads only.
--+ start
local answer = redis.call('HSCAN', prefix .. 'records', ARGV[3], 'COUNT', ARGV[4])
local found = {}
for at = 1, #answer[2], 2 do
  if not redis.call('ZSCORE', prefix .. 'jobs', answer[2][at]) then
    found[#found + 1] = answer[2][at]
  end
end
return {answer[1], found}
