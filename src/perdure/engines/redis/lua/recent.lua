-- recent: some jobs at one end of a line: the last that ended, the newest dead ones, or the next that are due.
-- KEYS: the store's prefix.
-- ARGV: now, sender, line (`ended`, `dead` or `waiting`), limit.
-- Returns: id and record of each.
-- Guarantees: reads only. Looks at no more jobs than the limit.
--+ start
--+ many
--+ ended
local line, limit = ARGV[3], tonumber(ARGV[4])
local ids = {}
if line == 'waiting' and limit > 0 then
  for at, place in ipairs(redis.call('ZRANGE', prefix .. line, 0, limit - 1)) do
    ids[at] = string.sub(place, 20)
  end
elseif line == 'dead' and limit > 0 then
  ids = redis.call('ZREVRANGE', prefix .. line, 0, limit - 1)
elseif limit > 0 then
  add_ended(ids, 'ZREVRANGE', limit)
end
local found = {}
local chosen = {unpack(ids, 1, math.min(limit, #ids))}
for number, record in ipairs(read_many(prefix .. 'records', chosen)) do
  found[2 * number - 1], found[2 * number] = chosen[number], record
end
return found
