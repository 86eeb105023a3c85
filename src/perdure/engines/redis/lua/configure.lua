-- configure: sets what an operator says about a queue, of the values that are named.
-- KEYS: the store's prefix.
-- ARGV: now, sender, queue; then name, value ('' for nothing said) of each setting that is named.
-- Returns: `name:queue`, value of each setting of the queue, as they are now.
-- Guarantees: settings that are not named stay; others are told.
--+ start
--+ room
local NAMES = {'retry_share', 'is_strict', 'max_retries_running', 'concurrency'}
local queue, settings = ARGV[3], prefix .. 'settings'
expect('hash', 'settings')
begin_to_write()
for at = 4, #ARGV, 2 do
  local field = ARGV[at] .. ':' .. queue
  if ARGV[at + 1] == '' then
    redis.call('HDEL', settings, field)
  else
    redis.call('HSET', settings, field, ARGV[at + 1])
  end
end
local said = {}
for _, name in ipairs(NAMES) do
  local field = name .. ':' .. queue
  local value = redis.call('HGET', settings, field)
  if value then
    said[#said + 1] = field
    said[#said + 1] = value
  end
end
if sender ~= '' then
  redis.call('PUBLISH', prefix .. 'hints', sender)
end
return said
