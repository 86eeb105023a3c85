-- A queue's bell calls one worker that stands by, which then fetches. It is rung when there is something to claim, and is
-- there only while the queue has ready jobs. It is a hint: where the key holds something else, nobody is called.
local function has_ready(queue)
  return redis.call('EXISTS', prefix .. 'ready:fresh:' .. queue, prefix .. 'ready:retry:' .. queue) > 0
end

local function ring(queue)
  local bell = prefix .. 'bell:' .. queue
  if sender ~= '' and redis.call('EXISTS', bell) == 0 then
    redis.pcall('RPUSH', bell, '1')
  end
end

local function hush(queue)
  if not has_ready(queue) then
    redis.call('DEL', prefix .. 'bell:' .. queue)
  end
end
