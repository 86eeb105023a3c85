-- enqueue: makes jobs, but none whose id exists or whose (task, unique key) is taken by a live job.
-- KEYS: the store's prefix.
-- ARGV: now, sender, the number of kinds, then the kinds and the jobs as fragments/make.lua takes them.
-- Returns: place and id of each job for which another one stands.
-- Guarantees: all or none; everything is looked at before the first write. The first write needs memory, so that a full
--     server refuses the whole batch. A repeated call changes nothing and answers the same.
--+ start
--+ many
--+ counts
--+ lines
--+ unique
--+ unfinished
--+ make
local KINDS = 4
local first = KINDS + tonumber(ARGV[3]) * KIND_WIDTH
expect('zset', 'jobs')

local asked = {}
for number = 1, (#ARGV - first + 1) / JOB_WIDTH do
  asked[number] = ARGV[first + 1 + (number - 1) * JOB_WIDTH]
end
local known = read_many(prefix .. 'records', asked)

local others = {}
local new = {}
local made = {}
local taken = {}
local at = first
for number, id in ipairs(asked) do
  if not known[number] and not made[id] then
    local kind, wrong = look_at_kind(tonumber(ARGV[at]), KINDS)
    if wrong then
      return wrong
    end
    local holder, unique = false, ARGV[at + 2]
    if ARGV[at + 4] ~= '' then
      expect('hash', 'args')
    end
    if unique ~= '' then
      -- [INV-12] One live job per task and unique key.
      local field = unique_field(kind.task, unique)
      holder = taken[field] or redis.call('HGET', prefix .. 'unique', field)
      taken[field] = holder or id
    end
    if holder then
      others[#others + 1] = number
      others[#others + 1] = holder
    else
      new[#new + 1] = at
      made[id] = kind
    end
  end
  at = at + JOB_WIDTH
end

-- [INV-15] Nothing can go wrong any more: a batch is made whole or not at all.
for _, job in ipairs(new) do
  local id = ARGV[job + 1]
  make(made[id], id, ARGV[job + 2], ARGV[job + 3], ARGV[job + 4])
end
write_made()
write_lines()
tell_news()
return others
