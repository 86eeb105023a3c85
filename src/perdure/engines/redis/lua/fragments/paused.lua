-- Whether a queue is paused now: a pause that has ended by itself is none, whether or not anybody cleared it away.
local function is_paused(queue)
  if redis.call('HEXISTS', prefix .. 'paused', queue) == 0 then
    return false
  end
  local ends_at = redis.call('HGET', prefix .. 'paused_until', queue)
  return (tonumber(ends_at or '') or math.huge) > now
end
