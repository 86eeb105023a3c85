-- enqueue one: makes one plain job that is ready at once: no unique key, no schedule, no long args.
-- KEYS: the store's prefix.
-- ARGV: now, sender, queue, score (the priority, negated), head (the job's record up to its run_at), tail (the record from what
--     follows its created_at), id.
-- Returns: nothing; the job stands, whether this call made it or an earlier one.
-- Guarantees: all or nothing: a write that the server refuses takes back those before it. The first write needs memory, so that
--     a full server refuses the job. A repeated call changes nothing and answers the same. Does what enqueue does for such a job.
local prefix, now, id = KEYS[1] .. ':', ARGV[1], ARGV[7]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] .. string.sub('000000', #time[2] + 1) .. time[2]
end
local records, counts, counter = prefix .. 'records', prefix .. 'counts', 'ready:fresh:' .. ARGV[3]
if redis.call('HSETNX', records, id, ARGV[5] .. now .. '\255\255\255' .. now .. '\255' .. ARGV[6]) == 0 then
  return
end

-- Each of these may meet a key of another kind; then what was written before it goes again. [INV-15]
local number = redis.pcall('HINCRBY', counts, counter, 1)
if type(number) == 'table' then
  -- A counter that holds no number is left as it is, as fragments/counter.lua does.
  if not string.find(number.err, 'integer', 1, true) then
    redis.call('HDEL', records, id)
    return number
  end
  counts = nil
end
local made = redis.pcall('ZADD', prefix .. 'jobs', 0, id)
if type(made) == 'number' then
  -- A place as fragments/place.lua has it.
  made = redis.pcall('ZADD', prefix .. counter, ARGV[4], string.sub('000000000000000000', #now + 1) .. now .. ':' .. id)
  if type(made) == 'table' then
    redis.call('ZREM', prefix .. 'jobs', id)
  end
end
if type(made) == 'table' then
  redis.call('HDEL', records, id)
  if counts and redis.call('HINCRBY', counts, counter, -1) <= 0 then
    redis.call('HDEL', counts, counter)
  end
  return made
end

-- The first of its line is news, as in fragments/lines.lua.
if (number == 1 or not counts) and ARGV[2] ~= '' then
  local bell = prefix .. 'bell:' .. ARGV[3]
  if redis.call('EXISTS', bell) == 0 then
    redis.pcall('RPUSH', bell, '1')
  end
  redis.call('PUBLISH', prefix .. 'hints', ARGV[2])
end
