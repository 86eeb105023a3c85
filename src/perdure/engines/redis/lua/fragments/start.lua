-- The beginning of every script: where the store's keys are, and what time it is.
local prefix = KEYS[1] .. ':'
local sender = ARGV[2]
local now
if ARGV[1] == '' then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
else
  now = tonumber(ARGV[1])
end

-- A number as text, digit by digit: what Lua writes by itself loses digits beyond the fourteenth.
local function text(number)
  return string.format('%.0f', number)
end

local now_text = text(now)
local LATEST = 253402300700000000

-- The moment so many microseconds from now; never beyond what a date can tell.
local function after(delay)
  return text(math.min(now + tonumber(delay), LATEST))
end

-- Refuses a key that holds another kind of value, so that no script stops half-way.
local expected = {}

local function expect(kind, ...)
  for _, name in ipairs({...}) do
    if not expected[name] then
      local found = redis.call('TYPE', prefix .. name).ok
      if found ~= kind and found ~= 'none' then
        error('the key ' .. prefix .. name .. ' holds a ' .. found .. ', not a ' .. kind)
      end
      expected[name] = true
    end
  end
end
