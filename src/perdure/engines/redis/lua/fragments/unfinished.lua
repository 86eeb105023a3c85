-- The unfinished jobs of a schedule; a schedule fires or waits by whether it has any.
local function finish(schedule, id)
  if schedule then
    redis.call('SREM', prefix .. 'unfinished:' .. schedule, id)
  end
end
