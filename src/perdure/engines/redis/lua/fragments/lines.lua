-- Lines of jobs: ready ones by queue and lane, waiting ones by time; whoever may be waiting for them is told.
--+ bell
--+ place
local lines = {}
local left = {}
local is_news = false

local function ready_line(lane, queue)
  return prefix .. 'ready:' .. lane .. ':' .. queue
end

-- What is to be added to the line of a state: scores and places, one after the other. To look at it before the first write
-- refuses a key of another kind.
local function line_of(state, lane, queue)
  local key = state == 'ready' and ready_line(lane, queue) or prefix .. 'waiting'
  local line = lines[key]
  if not line then
    line = {head = redis.call('ZRANGE', key, 0, 0)[1], members = {}, queue = state == 'ready' and queue}
    lines[key] = line
  end
  return line.members
end

-- Puts a job where its state says.
local function stand(state, lane, queue, priority, run_at, id)
  local members = line_of(state, lane, queue)
  local at = #members + 1
  members[at], members[at + 1] = state == 'ready' and -priority or 0, place_of(run_at, id)
end

-- Takes a job out of where its state says.
local function leave(state, lane, queue, run_at, id)
  if state == 'ready' then
    redis.call('ZREM', ready_line(lane, queue), place_of(run_at, id))
    left[queue] = true
  else
    redis.call('ZREM', prefix .. 'waiting', place_of(run_at, id))
  end
end

-- Writes the lines. News is a line that was empty, or a waiting job that is due before all others.
local function write_lines()
  for key, line in pairs(lines) do
    if #line.members > 0 then
      write_many('ZADD', key, line.members)
      if not line.head or (key == prefix .. 'waiting' and redis.call('ZRANGE', key, 0, 0)[1] ~= line.head) then
        is_news = true
        if line.queue then
          ring(line.queue)
        end
      end
    end
  end
end

local function tell_news()
  for queue in pairs(left) do
    hush(queue)
  end
  if is_news and sender ~= '' then
    redis.call('PUBLISH', prefix .. 'hints', sender)
  end
end
