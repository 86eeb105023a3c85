-- forward now: makes the forwards of dead jobs due now, and makes one where there is none.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then ids.
-- Returns: how many are due now.
-- Guarantees: a job that is not dead, or is forwarded, stays as it is.
--+ start
--+ record
--+ counter
--+ forwards
--+ room
local dead = {}
for at = 3, #ARGV do
  local job = read_job(ARGV[at])
  local state = redis.call('HGET', prefix .. 'forward:' .. ARGV[at], 'state')
  if job[STATE] == 'dead' and state ~= 'forwarded' then
    local queue = home_of(job)
    expect_forward(ARGV[at], queue)
    dead[#dead + 1] = {ARGV[at], job[ATTEMPT], queue, state}
  end
end

begin_to_write()
for _, each in ipairs(dead) do
  local id, attempt, queue, state = each[1], each[2], each[3], each[4]
  if not state then
    begin_forward(id, attempt, queue, false)
  else
    local key = prefix .. 'forward:' .. id
    redis.call('HSET', key, 'next_at', now_text)
    redis.call('ZADD', prefix .. 'forwards:' .. queue, now_text, id)
    if state == 'stopped' then
      redis.call('HSET', key, 'state', 'failing')
      count_forward('stopped', -1)
      count_forward('failing', 1)
    end
  end
end
write_forward_counts()
return #dead
