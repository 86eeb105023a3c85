-- Lines of jobs: ready ones by queue and lane, waiting ones by time; whoever may be waiting for them is told.
local added = {}
local is_heard = {}
local is_news = false

-- A job's place: its run_at in eighteen digits, then its id, so that places sort by bytes as they should by time.
local function place(run_at, id)
  if string.sub(run_at, 1, 1) == '-' then
    run_at = '0'
  end
  return string.rep('0', 18 - #run_at) .. run_at .. ':' .. id
end

local function ready_line(lane, queue)
  return prefix .. 'ready:' .. lane .. ':' .. queue
end

local function add_to(line, score, member)
  local members = added[line]
  if not members then
    members = {}
    added[line] = members
  end
  members[#members + 1] = score
  members[#members + 1] = member
end

-- Puts a job where its state says.
local function stand(state, lane, queue, priority, run_at, id)
  local line = state == 'ready' and ready_line(lane, queue) or prefix .. 'waiting'
  add_to(line, state == 'ready' and -priority or 0, place(run_at, id))
  is_heard[line] = true
end

-- Takes a job out of where its state says.
local function leave(state, lane, queue, run_at, id)
  if state == 'ready' then
    redis.call('ZREM', ready_line(lane, queue), place(run_at, id))
  else
    redis.call('ZREM', prefix .. 'waiting', place(run_at, id))
  end
end

-- ZADD of any number of members; Lua hands over a few thousand values at a time.
local function add_all(line, members)
  for first = 1, #members, 4000 do
    redis.call('ZADD', line, unpack(members, first, math.min(first + 3999, #members)))
  end
end

-- Writes the lines. News is a line that was empty, or a waiting job that is due before all others.
local function write_lines()
  for line, members in pairs(added) do
    local head = is_heard[line] and redis.call('ZRANGE', line, 0, 0)[1]
    add_all(line, members)
    if is_heard[line] and not head then
      is_news = true
    elseif line == prefix .. 'waiting' and redis.call('ZRANGE', line, 0, 0)[1] ~= head then
      is_news = true
    end
  end
end

local function tell_news()
  if is_news and sender ~= '' then
    redis.call('PUBLISH', prefix .. 'hints', sender)
  end
end
