-- audit: looks at a page of jobs: whether each stands where its record says, and how many there are of each kind.
-- KEYS: the store's prefix.
-- ARGV: now, sender, the last id of the page before ('' for the first), limit.
-- Returns: per job its id, record, args, error, result, the records of its attempts, and what is wrong ('' for nothing); then
--     `key field`, number of each counter that the jobs of the page make up; then the counters as they are, in the same form.
-- Guarantees: reads only, and one picture of the page. Looks at no more jobs than the limit.
--+ start
--+ many
--+ record
--+ parked
--+ place
--+ standing
local from = ARGV[3] == '' and '-' or '(' .. ARGV[3]
local ids = redis.call('ZRANGEBYLEX', prefix .. 'jobs', from, '+', 'LIMIT', 0, ARGV[4])
local counted = {}

local function tally(field)
  counted[field] = (counted[field] or 0) + 1
end

local parts = {}
for number, part in ipairs({'args', 'errors', 'results'}) do
  parts[number] = read_many(prefix .. part, ids)
end
local found = {}
for number, record in ipairs(read_many(prefix .. 'records', ids)) do
  local id, job = ids[number], fields_of(record)
  local fault = not record and 'no record' or not job[STATE] and 'unreadable' or fault_of(job, id) or ''
  if job[STATE] then
    tally('counts ' .. job[STATE] .. ':' .. lane_of(job) .. ':' .. job[QUEUE])
    local forward = job[STATE] == 'dead' and redis.call('HGET', prefix .. 'forward:' .. id, 'state')
    if forward then
      tally('forward_counts ' .. forward)
    end
  end
  local attempts = redis.call('LRANGE', prefix .. 'attempts:' .. id, 0, -1)
  found[number] = {id, record, parts[1][number], parts[2][number], parts[3][number], attempts, fault}
end

local numbers = {}
for field, number in pairs(counted) do
  numbers[#numbers + 1] = field
  numbers[#numbers + 1] = text(number)
end
local counters = {}
for _, key in ipairs({'counts', 'forward_counts'}) do
  local fields = redis.call('HGETALL', prefix .. key)
  for at = 1, #fields, 2 do
    counters[#counters + 1] = key .. ' ' .. fields[at]
    counters[#counters + 1] = fields[at + 1]
  end
end
return {found, numbers, counters}
