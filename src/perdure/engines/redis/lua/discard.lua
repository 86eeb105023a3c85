-- discard: dismisses dead jobs; they end cancelled and are pruned like any cancelled job.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then ids.
-- Returns: how many were dismissed.
-- Guarantees: a job that is no longer dead stays as it is. Whatever was to be forwarded is so no more.
--+ start
--+ record
--+ counts
--+ forwards
--+ ended
--+ room
expect('zset', 'dead', 'cancelled', 'ended')
expect('hash', 'records', 'counts')
local dead = {}
local seen = {}
for at = 3, #ARGV do
  local id = ARGV[at]
  local job = read_job(id)
  if job[STATE] == 'dead' and not seen[id] then
    expect_forward(id, home_of(job))
    dead[#dead + 1] = {id, job}
    seen[id] = true
  end
end
begin_to_write()
for _, each in ipairs(dead) do
  local id, job = each[1], each[2]
  redis.call('ZREM', prefix .. 'dead', id)
  forget_forward(id)
  job[STATE], job[REASON], job[ENDED_AT] = 'cancelled', '=discarded', now_text
  write_job(id, job)
  end_alone(id)
  count('dead', lane_of(job), job[QUEUE], -1)
  count('cancelled', lane_of(job), job[QUEUE], 1)
end
write_counts()
write_forward_counts()
return #dead
