-- Deletes a few notes whose time is over, the longest expired first; they stand no more, so nobody misses them.
local function forget_notes()
  local expired = redis.call('ZRANGEBYSCORE', prefix .. 'notes_expiring', '-inf', now_text, 'LIMIT', 0, 100)
  for _, name in ipairs(expired) do
    local at = string.find(name, ':', 1, true)
    redis.call('HDEL', prefix .. 'notes', name)
    redis.call('ZREM', prefix .. 'notes_expiring', name)
    redis.call('ZREM', prefix .. 'notes_made:' .. string.sub(name, 1, at - 1), string.sub(name, at + 1))
  end
end
