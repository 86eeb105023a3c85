-- The unfinished jobs of a schedule, whose name comes with a '='; a schedule fires or waits by whether it has any.
local function unfinished_of(schedule)
  return 'unfinished:' .. string.sub(schedule, 2)
end

local function finish(schedule, id)
  if schedule ~= '' then
    redis.call('SREM', prefix .. unfinished_of(schedule), id)
  end
end
