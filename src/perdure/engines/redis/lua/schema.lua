-- schema: the version of the keys' layout; a store that has none gets the one given.
-- KEYS: the store's prefix.
-- ARGV: now, sender, version ('' to only look).
-- Returns: the version that the store has, 0 for none.
-- Guarantees: of several openers of an empty store one writes the version.
--+ start
if ARGV[3] ~= '' then
  redis.call('SETNX', prefix .. 'schema', ARGV[3])
end
return tonumber(redis.call('GET', prefix .. 'schema') or '0')
