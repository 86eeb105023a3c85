-- replay: puts dead jobs back, each due a while after the one before.
-- KEYS: the store's prefix.
-- ARGV: now, sender, since (from when the delays count; '' for now), done (how many went before), every (microseconds);
--     then ids, oldest first.
-- Returns: since, and how many were put back.
-- Guarantees: a job that is no longer dead, or whose unique key is busy, stays as it is and costs no turn.
--+ start
--+ many
--+ record
--+ counts
--+ lines
--+ unique
--+ unfinished
--+ forwards
--+ put_back
--+ room
local since = ARGV[3] == '' and now or tonumber(ARGV[3])
local before, every = tonumber(ARGV[4]), tonumber(ARGV[5])
expect('zset', 'waiting', 'dead', 'cancelled', 'ended')
expect('hash', 'records', 'counts', 'unique')

local dead = {}
local seen = {}
for at = 6, #ARGV do
  local id = ARGV[at]
  local job = read_job(id)
  if job[STATE] == 'dead' and not seen[id] then
    local queue = home_of(job)
    expect('zset', 'ready:fresh:' .. queue, 'ready:retry:' .. queue)
    expect_forward(id, queue)
    if job[SCHEDULE] ~= '' then
      expect('set', unfinished_of(job[SCHEDULE]))
    end
    dead[#dead + 1] = {id, job}
    seen[id] = true
  end
end

begin_to_write()
local done = 0
for _, each in ipairs(dead) do
  if put_back(each[1], each[2], text(math.min(since + (before + done) * every, LATEST))) then
    done = done + 1
  end
end
write_lines()
write_counts()
write_forward_counts()
tell_news()
return {text(since), done}
