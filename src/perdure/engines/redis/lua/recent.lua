-- recent: some jobs at one end of a line: the last that ended, the newest dead ones, or the next that are due.
-- KEYS: the store's prefix.
-- ARGV: now, sender, line (`ended`, `dead` or `waiting`), limit.
-- Returns: for each the fields task, queue, state, lane, attempt, failures, run_at, reason, delay, started_at, ended_at.
-- Guarantees: reads only. Looks at no more jobs than the limit.
--+ start
local line, limit = ARGV[3], tonumber(ARGV[4])
local members
if limit == 0 then
  members = {}
elseif line == 'waiting' then
  members = redis.call('ZRANGE', prefix .. line, 0, limit - 1)
else
  members = redis.call('ZREVRANGE', prefix .. line, 0, limit - 1)
end
local found = {}
for at, member in ipairs(members) do
  local id = line == 'waiting' and string.sub(member, 20) or member
  found[at] = redis.call(
    'HMGET', prefix .. 'job:' .. id, 'task', 'queue', 'state', 'lane', 'attempt', 'failures', 'run_at', 'reason',
    'delay', 'started_at', 'ended_at'
  )
end
return found
