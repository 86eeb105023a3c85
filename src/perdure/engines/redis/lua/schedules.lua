-- schedules: a page of schedules by name.
-- KEYS: the store's prefix.
-- ARGV: now, sender, the last name of the page before ('' for the first page), limit.
-- Returns: of each its document, when it was last named, and whether a job of it is unfinished.
-- Guarantees: reads only. Looks at no more schedules than the limit.
--+ start
--+ show_schedule
local from = ARGV[3] == '' and '-' or '(' .. ARGV[3]
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYLEX', prefix .. 'schedules', from, '+', 'LIMIT', 0, ARGV[4])) do
  found[#found + 1] = show_schedule(name)
end
return found
