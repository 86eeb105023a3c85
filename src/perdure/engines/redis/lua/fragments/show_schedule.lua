-- A schedule as it is answered: its document, when it was last named, 1 if a job of it is unfinished, and its name.
local function show_schedule(name)
  local found = redis.call('HMGET', prefix .. 'schedule:' .. name, 'document', 'named_at')
  return {found[1], found[2], redis.call('EXISTS', prefix .. 'unfinished:' .. name), name}
end
