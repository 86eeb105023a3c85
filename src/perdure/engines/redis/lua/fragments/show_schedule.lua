-- A schedule as it is answered: its document, when it was last named, and 1 if a job of it is unfinished.
local function show_schedule(name)
  local found = redis.call('HMGET', prefix .. 'schedule:' .. name, 'document', 'named_at')
  return {found[1], found[2], redis.call('EXISTS', prefix .. 'unfinished:' .. name)}
end
