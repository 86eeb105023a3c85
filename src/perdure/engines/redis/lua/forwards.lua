-- forwards, forward counts: the forwards of a list of jobs, and how many there are in each state.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then ids.
-- Returns: state, how many, state, how many…; and for each id its forward's fields, none when there is none.
-- Guarantees: reads only; one picture of all.
--+ start
local found = {}
for at = 3, #ARGV do
  found[#found + 1] = redis.call('HGETALL', prefix .. 'forward:' .. ARGV[at])
end
return {redis.call('HGETALL', prefix .. 'forward_counts'), found}
