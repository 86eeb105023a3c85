-- recent: some jobs at one end of a line: the last that ended, the newest dead ones, or the next that are due.
-- KEYS: the store's prefix.
-- ARGV: now, sender, line (`ended`, `dead` or `waiting`), limit.
-- Returns: the record of each.
-- Guarantees: reads only. Looks at no more jobs than the limit.
--+ start
--+ many
local line, limit = ARGV[3], tonumber(ARGV[4])
local members
if limit == 0 then
  members = {}
elseif line == 'waiting' then
  members = redis.call('ZRANGE', prefix .. line, 0, limit - 1)
else
  members = redis.call('ZREVRANGE', prefix .. line, 0, limit - 1)
end
local ids = {}
for at, member in ipairs(members) do
  ids[at] = line == 'waiting' and string.sub(member, 20) or member
end
return read_many(prefix .. 'records', ids)
