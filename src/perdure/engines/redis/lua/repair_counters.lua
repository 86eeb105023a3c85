-- repair: corrects counters by what an audit found them to be wrong by.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then per counter key (`counts` or `forward_counts`), field, the value that the audit saw ('' for none), and
--     what it should have been.
-- Returns: for each 1 when it was corrected, else 0.
-- Guarantees: a counter that has changed since the audit is left as it is.
--+ start
--+ room
expect('hash', 'counts', 'forward_counts')
begin_to_write()
local answers = {}
for at = 3, #ARGV, 4 do
  local key, field, seen, right = prefix .. ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local is_same = (redis.call('HGET', key, field) or '') == seen
  if is_same and right == '0' then
    redis.call('HDEL', key, field)
  elseif is_same then
    redis.call('HSET', key, field, right)
  end
  answers[#answers + 1] = is_same and 1 or 0
end
return answers
