-- One command for any number of values: Lua hands over a few thousand at a time.
local function write_many(command, key, values)
  for first = 1, #values, 4000 do
    redis.call(command, key, unpack(values, first, math.min(first + 3999, #values)))
  end
end

-- What a hash holds under each of some names, in their order; false where there is nothing.
local function read_many(key, names)
  if #names <= 4000 then
    return #names == 0 and {} or redis.call('HMGET', key, unpack(names))
  end
  local found = {}
  for first = 1, #names, 4000 do
    for _, value in ipairs(redis.call('HMGET', key, unpack(names, first, math.min(first + 3999, #names)))) do
      found[#found + 1] = value
    end
  end
  return found
end
