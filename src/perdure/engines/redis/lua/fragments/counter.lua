-- Changes a counter of a hash; one that comes to nothing goes. A field that holds no number is left as it is, so that one bad
-- value does not stop a script half-way: `perdure doctor --repair` counts it anew. Any other refusal is raised.
local function change_counter(key, field, by)
  local number = redis.pcall('HINCRBY', key, field, by)
  if type(number) == 'table' then
    if not string.find(number.err, 'integer', 1, true) and not string.find(number.err, 'overflow', 1, true) then
      redis.call('HINCRBY', key, field, by)
    end
  elseif number <= 0 then
    redis.call('HDEL', key, field)
  end
end
