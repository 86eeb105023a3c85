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

-- Refuses a key that holds another kind of value, so that no script stops half-way. To ask for a size is cheaper than to ask
-- for the kind, and refused where the kind is another one.
local expected = {}
local SIZES = {zset = 'ZCARD', hash = 'HLEN', set = 'SCARD', list = 'LLEN'}

local function expect(kind, ...)
  for number = 1, select('#', ...) do
    local name = select(number, ...)
    if not expected[name] then
      if type(redis.pcall(SIZES[kind], prefix .. name)) == 'table' then
        error('the key ' .. prefix .. name .. ' holds a ' .. redis.call('TYPE', prefix .. name).ok .. ', not a ' .. kind)
      end
      expected[name] = true
    end
  end
end
