-- enqueue: makes jobs, but none whose id exists or whose (task, unique key) is taken by a live job.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then per job what fragments/make.lua takes.
-- Returns: the id that stands for each job, in order.
-- Guarantees: all or none; everything is looked at before the first write. The first write needs memory, so that a full
--     server refuses the whole batch. A repeated call changes nothing and answers the same.
--+ start
--+ given
--+ counts
--+ lines
--+ unique
--+ make
expect('zset', 'jobs', 'waiting')
expect('hash', 'counts', 'unique')

local standing = {}
local new = {}
local made = {}
local taken = {}
for at = 3, #ARGV, WIDTH do
  local id, task, unique = ARGV[at], ARGV[at + 1], given(ARGV[at + 7])
  local field = unique and unique_field(task, unique)
  local holder = false
  if made[id] or redis.call('EXISTS', prefix .. 'job:' .. id) == 1 then
    holder = id
  elseif field then
    -- [INV-12] One live job per task and unique key.
    holder = taken[field] or redis.call('HGET', prefix .. 'unique', field)
  end
  if not holder then
    local wrong = look_at_new(at)
    if wrong then
      return wrong
    end
    new[#new + 1] = at
    made[id] = true
    if field then
      taken[field] = id
    end
    holder = id
  end
  standing[#standing + 1] = holder
end

-- [INV-15] Nothing can go wrong any more: a batch is made whole or not at all.
for _, at in ipairs(new) do
  make(at)
end
write_made()
write_lines()
write_counts()
tell_news()
return standing
