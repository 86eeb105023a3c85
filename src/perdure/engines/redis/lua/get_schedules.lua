-- get schedules: the schedules with some names.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then names.
-- Returns: for each its document, when it was last named, and whether a job of it is unfinished; nil documents for none.
-- Guarantees: reads only.
--+ start
--+ show_schedule
local found = {}
for at = 3, #ARGV do
  found[#found + 1] = show_schedule(ARGV[at])
end
return found
