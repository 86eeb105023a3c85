-- get schedules: the schedules with some names.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then names.
-- Returns: each as fragments/show_schedule.lua shows it, with nil for the document of one that does not exist.
-- Guarantees: reads only.
--+ start
--+ show_schedule
local found = {}
for at = 3, #ARGV do
  found[#found + 1] = show_schedule(ARGV[at])
end
return found
