-- replay: puts dead jobs back, each due a while after the one before.
-- KEYS: the store's prefix.
-- ARGV: now, sender, since (from when the delays count; '' for now), done (how many went before), every (microseconds);
--     then ids, oldest first.
-- Returns: since, and how many were put back.
-- Guarantees: a job that is no longer dead, or whose unique key is busy, stays as it is and costs no turn.
--+ start
--+ counts
--+ lines
--+ unique
--+ forwards
--+ put_back
--+ room
local since = ARGV[3] == '' and now or tonumber(ARGV[3])
local before, every = tonumber(ARGV[4]), tonumber(ARGV[5])
expect('zset', 'waiting', 'dead', 'cancelled', 'ended')
expect('hash', 'counts', 'unique')

local dead = {}
for at = 6, #ARGV do
  local job = redis.call('HMGET', prefix .. 'job:' .. ARGV[at], 'state', 'queue', 'origin')
  if job[1] == 'dead' then
    local queue = job[3] or job[2]
    expect('zset', 'ready:fresh:' .. queue, 'ready:retry:' .. queue)
    expect_forward(ARGV[at], queue)
    dead[#dead + 1] = ARGV[at]
  end
end

begin_to_write()
local done = 0
for _, id in ipairs(dead) do
  if put_back(id, text(math.min(since + (before + done) * every, LATEST))) then
    done = done + 1
  end
end
write_lines()
write_counts()
write_forward_counts()
tell_news()
return {text(since), done}
