-- How many jobs each queue has by state and lane: changes are gathered, and written once per counter.
--+ counter
local changes = {}

-- A line is `lane:queue`.
local function count_line(state, line, by)
  local field = state .. ':' .. line
  changes[field] = (changes[field] or 0) + by
end

local function count(state, lane, queue, by)
  count_line(state, lane .. ':' .. queue, by)
end

local function write_counts()
  for field, by in pairs(changes) do
    if by ~= 0 then
      change_counter(prefix .. 'counts', field, by)
    end
  end
end
