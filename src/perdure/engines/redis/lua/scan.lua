-- list, count, groups, replay, discard: looks through some jobs in the order of their ids for those that match.
-- KEYS: the store's prefix.
-- ARGV: now, sender, shape (`whole`, `brief` or `count`), limit (of matches), then the filter: state, task, queue, reason,
--     group, before, after, schedule, forward, each '' for none, else '=' and it; then source (`jobs`, `dead`, `cancelled` or `ids`);
--     then for `ids` the ids themselves, else direction (`up` or `down`), the id to go on from ('' for the beginning) and
--     how many jobs to look at.
-- Returns: the last id looked at ('' when there are no more), how many matched; and of each match id, fields: all of them,
--     or task, fingerprint, ended_at, error.
-- Guarantees: reads only. Looks at no more jobs than told, so that it is over soon however many there are.
--+ start
--+ given
local shape, limit = ARGV[3], tonumber(ARGV[4])
local state, task, queue, reason = given(ARGV[5]), given(ARGV[6]), given(ARGV[7]), given(ARGV[8])
local group, before, since = given(ARGV[9]), given(ARGV[10]), given(ARGV[11])
local schedule, forward = given(ARGV[12]), given(ARGV[13])
before, since = tonumber(before), tonumber(since)

local function look()
  if ARGV[14] == 'ids' then
    local ids = {}
    for at = 15, #ARGV do
      ids[#ids + 1] = ARGV[at]
    end
    return ids, true
  end
  local line, from, number = prefix .. ARGV[14], ARGV[16], tonumber(ARGV[17])
  local ids
  if ARGV[15] == 'up' then
    ids = redis.call('ZRANGEBYLEX', line, from == '' and '-' or '(' .. from, '+', 'LIMIT', 0, number)
  else
    ids = redis.call('ZREVRANGEBYLEX', line, from == '' and '+' or '(' .. from, '-', 'LIMIT', 0, number)
  end
  return ids, #ids < number
end

local function matches(id)
  local job = redis.call(
    'HMGET', prefix .. 'job:' .. id,
    'state', 'task', 'queue', 'origin', 'reason', 'fingerprint', 'ended_at', 'created_at', 'schedule'
  )
  local date = tonumber(job[7] or job[8] or '0')
  return job[1]
    and (not state or job[1] == state)
    and (not task or job[2] == task)
    and (not queue or job[3] == queue or job[4] == queue)
    and (not reason or job[5] == reason)
    and (not group or job[6] == group)
    and (not before or date < before)
    and (not since or date >= since)
    and (not schedule or job[9] == schedule)
    and (not forward or redis.call('HGET', prefix .. 'forward:' .. id, 'state') == forward)
end

local ids, is_end = look()
local last = ''
local number = 0
local found = {}
for position, id in ipairs(ids) do
  if number == limit then
    is_end = false
    break
  end
  last = id
  if matches(id) then
    number = number + 1
    if shape == 'whole' then
      found[#found + 1] = id
      found[#found + 1] = redis.call('HGETALL', prefix .. 'job:' .. id)
    elseif shape == 'brief' then
      found[#found + 1] = id
      found[#found + 1] = redis.call('HMGET', prefix .. 'job:' .. id, 'task', 'fingerprint', 'ended_at', 'error')
    end
  end
end
return {is_end and '' or last, number, found}
