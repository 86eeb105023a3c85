-- promote: makes waiting jobs that are due ready, the longest due first.
-- KEYS: the store's prefix.
-- ARGV: now, sender, limit.
-- Returns: how many became ready, and the run_at of the next waiting job ('' when none waits).
-- Guarantees: any worker may run it; a job is promoted once. Looks at no more than `limit` jobs.
--+ start
--+ counts
--+ lines
--+ room
expect('zset', 'waiting')
expect('hash', 'counts')
local promoted = {}
-- [INV-16] Nothing becomes ready before its run_at, by the store's clock.
local last = '(' .. place(text(now + 1), '')
for _, member in ipairs(redis.call('ZRANGEBYLEX', prefix .. 'waiting', '-', last, 'LIMIT', 0, ARGV[3])) do
  local id = string.sub(member, 20)
  local job = redis.call('HMGET', prefix .. 'job:' .. id, 'state', 'lane', 'queue', 'priority', 'run_at')
  if job[1] == 'waiting' then
    expect('zset', 'ready:' .. (job[2] or 'fresh') .. ':' .. job[3])
  end
  promoted[#promoted + 1] = {id, job, member}
end

if #promoted > 0 then
  begin_to_write()
end
local number = 0
for _, each in ipairs(promoted) do
  local id, job = each[1], each[2]
  redis.call('ZREM', prefix .. 'waiting', each[3])
  if job[1] == 'waiting' then
    local lane, queue = job[2] or 'fresh', job[3]
    redis.call('HSET', prefix .. 'job:' .. id, 'state', 'ready')
    count('waiting', lane, queue, -1)
    count('ready', lane, queue, 1)
    stand('ready', lane, queue, tonumber(job[4] or '0'), job[5], id)
    number = number + 1
  end
end
write_lines()
write_counts()
tell_news()
local first = redis.call('ZRANGE', prefix .. 'waiting', 0, 0)[1]
if not first then
  return {number, ''}
end
return {number, redis.call('HGET', prefix .. 'job:' .. string.sub(first, 20), 'run_at') or ''}
