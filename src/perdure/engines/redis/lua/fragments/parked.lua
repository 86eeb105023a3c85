-- Parked jobs of a queue, by task: a worker that knows the task claims them before they are due. The task's length keeps task
-- and id apart, whatever they hold. Only waiting jobs are in it; each is in `waiting`, too.
local function parked_member(task, id)
  return #task .. ':' .. task .. ':' .. id
end

-- Takes a waiting job out, if it is parked; `parked_at` is '' for one that is not.
local function leave_parked(parked_at, task, queue, id)
  if parked_at ~= '' then
    redis.call('ZREM', prefix .. 'parked:' .. queue, parked_member(task, id))
  end
end

local function expect_parked(job)
  if job[PARKED_AT] ~= '' then
    expect('zset', 'parked:' .. job[QUEUE])
  end
end
