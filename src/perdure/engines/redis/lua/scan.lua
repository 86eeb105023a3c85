-- list, count, groups, replay, discard: looks through some jobs in the order of their ids for those that match.
-- KEYS: the store's prefix.
-- ARGV: now, sender, shape (`whole`, `brief` or `count`), limit (of matches), then the filter: state, task, queue, reason,
--     group, before, after, schedule, forward, each '' for none, else '=' and it; then source (`jobs`, `dead`, `cancelled` or `ids`);
--     then for `ids` the ids themselves, else direction (`up` or `down`), the id to go on from ('' for the beginning) and
--     how many jobs to look at.
-- Returns: the last id looked at ('' when there are no more), how many matched; and of each match id, error and: record, args,
--     result of the whole, or task, fingerprint, ended_at.
-- Guarantees: reads only. Looks at no more jobs than told, so that it is over soon however many there are.
--+ start
--+ given
--+ many
--+ record
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

local function matches(id, job)
  local date = tonumber(job[ENDED_AT] ~= '' and job[ENDED_AT] or job[CREATED_AT])
  return job[STATE]
    and (not state or job[STATE] == state)
    and (not task or job[TASK] == task)
    and (not queue or job[QUEUE] == queue or job[ORIGIN] == '=' .. queue)
    and (not reason or job[REASON] == '=' .. reason)
    and (not group or job[FINGERPRINT] == group)
    and (not before or date < before)
    and (not since or date >= since)
    and (not schedule or job[SCHEDULE] == '=' .. schedule)
    and (not forward or redis.call('HGET', prefix .. 'forward:' .. id, 'state') == forward)
end

local function part(name, id)
  return redis.call('HGET', prefix .. name, id)
end

local ids, is_end = look()
local last = ''
local number = 0
local found = {}
for position, record in ipairs(read_many(prefix .. 'records', ids)) do
  if number == limit then
    is_end = false
    break
  end
  local id, job = ids[position], fields_of(record)
  last = id
  if matches(id, job) then
    number = number + 1
    if shape == 'whole' then
      found[#found + 1] = {id, part('errors', id), record, part('args', id), part('results', id)}
    elseif shape == 'brief' then
      found[#found + 1] = {id, part('errors', id), job[TASK], job[FINGERPRINT], job[ENDED_AT]}
    end
  end
end
return {is_end and '' or last, number, found}
