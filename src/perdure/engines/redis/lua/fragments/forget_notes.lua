-- Deletes a few notes whose time is over, the longest expired first; they stand no more, so nobody misses them.

-- The expired notes, looked at before the first write: each is {its kind, its key, its name}.
local function expired_notes()
  local found = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'notes_expiring', '-inf', now_text, 'LIMIT', 0, 100)) do
    local at = string.find(name, ':', 1, true)
    local kind = at and string.sub(name, 1, at - 1)
    if kind then
      expect('zset', 'notes_made:' .. kind)
    end
    found[#found + 1] = {kind, at and string.sub(name, at + 1), name}
  end
  return found
end

local function forget_notes(expired)
  for _, note in ipairs(expired) do
    redis.call('HDEL', prefix .. 'notes', note[3])
    redis.call('ZREM', prefix .. 'notes_expiring', note[3])
    if note[1] then
      redis.call('ZREM', prefix .. 'notes_made:' .. note[1], note[2])
    end
  end
end
