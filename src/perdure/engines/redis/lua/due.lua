-- due: the schedules whose tick has come, the longest due first, and those with a backlog and no unfinished job.
-- KEYS: the store's prefix.
-- ARGV: now, sender, limit.
-- Returns: now, when the first of all is due ('' for never), when the first after now is; and each due one as
--     fragments/show_schedule.lua shows it.
-- Guarantees: reads only. Looks at no more schedules than are due, up to the limit, and than have a backlog.
--+ start
--+ show_schedule
local limit = tonumber(ARGV[3])
local first = redis.call('ZRANGE', prefix .. 'due', 0, 0, 'WITHSCORES')[2]
local found = {}
local is_there = {}
if limit > 0 then
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'due', '-inf', now_text, 'LIMIT', 0, limit)) do
    found[#found + 1] = show_schedule(name)
    is_there[name] = true
  end
  for _, name in ipairs(redis.call('SMEMBERS', prefix .. 'queued')) do
    local is_idle = redis.call('EXISTS', prefix .. 'unfinished:' .. name) == 0
    if #found < limit and is_idle and not is_there[name] then
      found[#found + 1] = show_schedule(name)
    end
  end
end
local later = redis.call('ZRANGEBYSCORE', prefix .. 'due', '(' .. now_text, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
return {now_text, first and text(tonumber(first)) or '', later and text(tonumber(later)) or '', found}
