-- get: the jobs of a list of ids.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then ids.
-- Returns: of all of them the records, the args, the errors and the results, nil where there is none.
-- Guarantees: reads only; one picture of all.
--+ start
--+ many
local ids = {}
for at = 3, #ARGV do
  ids[#ids + 1] = ARGV[at]
end
local parts = {}
for number, part in ipairs({'records', 'args', 'errors', 'results'}) do
  parts[number] = read_many(prefix .. part, ids)
end
return parts
