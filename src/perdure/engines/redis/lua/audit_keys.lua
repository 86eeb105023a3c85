-- audit: what type some keys have.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then names of keys.
-- Returns: for each its type, `none` where it does not exist.
-- Guarantees: reads only.
--+ start
local found = {}
for at = 3, #ARGV do
  found[#found + 1] = redis.call('TYPE', prefix .. ARGV[at]).ok
end
return found
