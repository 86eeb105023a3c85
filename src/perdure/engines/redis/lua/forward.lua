-- forward: claims due forwards, the longest due first; each has one try more.
-- KEYS: the store's prefix.
-- ARGV: now, sender, limit, lease (microseconds); then queues.
-- Returns: when the next one of these queues is due ('' for none); then of each claimed id, fields.
-- Guarantees: each is claimed once; a claim that has run out is due again. Looks at no more than `limit` of each queue. One that
--     cannot be read leaves the line, and its record stays.
--+ start
local limit, until_text = tonumber(ARGV[3]), after(ARGV[4])
local STATES = {pending = true, failing = true, stopped = true, forwarded = true}
local due = {}
local aside = {}
for at = 5, #ARGV do
  local line = 'forwards:' .. ARGV[at]
  expect('zset', line)
  local found = redis.call('ZRANGEBYSCORE', prefix .. line, '-inf', now_text, 'WITHSCORES', 'LIMIT', 0, limit)
  for place = 1, #found, 2 do
    local id = found[place]
    expect('hash', 'forward:' .. id)
    local said = redis.call('HMGET', prefix .. 'forward:' .. id, 'attempt', 'queue', 'state', 'tries')
    if tonumber(said[1] or '') and said[2] and STATES[said[3] or ''] and tonumber(said[4] or '0') then
      due[#due + 1] = {id, tonumber(found[place + 1]), line}
    else
      aside[#aside + 1] = {line, id}
    end
  end
end
table.sort(due, function(one, other)
  if one[2] ~= other[2] then
    return one[2] < other[2]
  end
  return one[1] < other[1]
end)

-- What cannot be read leaves the line, so that it keeps no other from its turn; the record stays as it is.
for _, each in ipairs(aside) do
  redis.call('ZREM', prefix .. each[1], each[2])
end
local claimed = {}
for number = 1, math.min(limit, #due) do
  local id, line = due[number][1], due[number][3]
  local key = prefix .. 'forward:' .. id
  redis.call('HINCRBY', key, 'tries', 1)
  redis.call('HSET', key, 'tried_at', now_text, 'next_at', until_text)
  redis.call('ZADD', prefix .. line, until_text, id)
  claimed[#claimed + 1] = id
  claimed[#claimed + 1] = redis.call('HGETALL', key)
end

local next_at = ''
for at = 5, #ARGV do
  local first = redis.call('ZRANGE', prefix .. 'forwards:' .. ARGV[at], 0, 0)[1]
  local moment = first and redis.call('HGET', prefix .. 'forward:' .. first, 'next_at')
  if tonumber(moment or '') and (next_at == '' or tonumber(moment) < tonumber(next_at)) then
    next_at = moment
  end
end
return {next_at, claimed}
