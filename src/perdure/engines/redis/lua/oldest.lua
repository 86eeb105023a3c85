-- queues: since when the longest ready job of each of some lines has been due.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then lines (`lane:queue`).
-- Returns: for each the eighteen digits of the earliest run_at, or '' when the line is empty.
-- Guarantees: reads only; skips from one priority to the next, so at most 201 steps a line.
--+ start
local oldest = {}
for at = 3, #ARGV do
  local line = prefix .. 'ready:' .. ARGV[at]
  local earliest = ''
  local found = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')
  while found[1] do
    local run_at = string.sub(found[1], 1, 18)
    if earliest == '' or run_at < earliest then
      earliest = run_at
    end
    found = redis.call('ZRANGEBYSCORE', line, '(' .. found[2], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  end
  oldest[#oldest + 1] = earliest
end
return oldest
