-- The line of jobs that have ended. Those that succeeded in one step share members, the ids with commas between: a place of its
-- own would be a third of what a job's commit costs. Cancelled jobs stand alone, for they may come back. Members are read a few
-- at a time, since nobody knows how many jobs they are.
local TOGETHER, STEP = 100, 20

local function end_together(ids)
  local members = {}
  for first = 1, #ids, TOGETHER do
    members[#members + 1] = now_text
    members[#members + 1] = table.concat(ids, ',', first, math.min(first + TOGETHER - 1, #ids))
  end
  if #members > 0 then
    redis.call('ZADD', prefix .. 'ended', unpack(members))
  end
end

local function end_alone(id)
  redis.call('ZADD', prefix .. 'ended', now_text, id)
  redis.call('ZADD', prefix .. 'cancelled', 0, id)
end

-- Adds the ids of a member to some.
local function add_ids(ids, member)
  for id in string.gmatch(member, '[^,]+') do
    ids[#ids + 1] = id
  end
end

-- Adds the ids from one end of the line, which the command reads, until there are enough.
local function add_ended(ids, command, enough)
  local first = 0
  repeat
    local members = redis.call(command, prefix .. 'ended', first, first + STEP - 1)
    for _, member in ipairs(members) do
      add_ids(ids, member)
    end
    first = first + STEP
  until #members < STEP or #ids >= enough
end
