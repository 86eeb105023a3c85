-- schedules: a page of schedules by name.
-- KEYS: the store's prefix.
-- ARGV: now, sender, the last name of the page before ('' for the first page), limit, whether names descend ('1' or '').
-- Returns: each as fragments/show_schedule.lua shows it.
-- Guarantees: reads only. Looks at no more schedules than the limit.
--+ start
--+ show_schedule
local command, from, to = 'ZRANGEBYLEX', '-', '+'
if ARGV[5] == '1' then
  command, from, to = 'ZREVRANGEBYLEX', '+', '-'
end
if ARGV[3] ~= '' then
  from = '(' .. ARGV[3]
end
local found = {}
for _, name in ipairs(redis.call(command, prefix .. 'schedules', from, to, 'LIMIT', 0, ARGV[4])) do
  found[#found + 1] = show_schedule(name)
end
return found
