-- fire: takes steps of schedules, each if its schedule has the revision that the step is based on, and makes their jobs.
-- KEYS: the store's prefix.
-- ARGV: now, sender, the number of kinds, then the kinds as fragments/make.lua takes them; then per step name, replaces,
--     needs_idle ('1' or ''), revision ('' to remove the schedule), next_at ('' for none), is_queued ('1' or ''), document, the
--     number of its jobs, and the jobs as fragments/make.lua takes them.
-- Returns: for each step 1 when it was taken, now or before, else 0.
-- Guarantees: nothing else runs meanwhile, so of any number of equal steps one is taken. Everything is looked at before the
--     first write. A job that exists already is not made again.
--+ start
--+ many
--+ counts
--+ lines
--+ unique
--+ unfinished
--+ make
--+ room
--+ schedule
local HEAD, KINDS = 8, 4
expect('zset', 'jobs')
expect('hash', 'records', 'args', 'unique')

local answers = {}
local taken = {}
local new = {}
local seen = {}
local at = KINDS + tonumber(ARGV[3]) * KIND_WIDTH
while at <= #ARGV do
  local name, replaces, revision, number = ARGV[at], ARGV[at + 1], ARGV[at + 3], tonumber(ARGV[at + 7])
  expect_schedule(name)
  local found = redis.call('HGET', prefix .. 'schedule:' .. name, 'revision')
  local is_held = ARGV[at + 2] == '1' and redis.call('EXISTS', prefix .. 'unfinished:' .. name) == 1
  -- [INV-21] A tick is one revision's to fire, and the revision changes with it.
  local is_taken = found == replaces and not is_held and not seen[name]
  answers[#answers + 1] = (is_taken or (found == revision and revision ~= '')) and 1 or 0
  if is_taken then
    seen[name] = true
    taken[#taken + 1] = at
    for job = at + HEAD, at + HEAD + (number - 1) * JOB_WIDTH, JOB_WIDTH do
      local id = ARGV[job + 1]
      if not new[id] and redis.call('HEXISTS', prefix .. 'records', id) == 0 then
        local kind, wrong = look_at_kind(tonumber(ARGV[job]), KINDS)
        if wrong then
          return wrong
        end
        new[id] = true
        new[#new + 1] = {kind, job}
      end
    end
  end
  at = at + HEAD + number * JOB_WIDTH
end

if #taken == 0 then
  return answers
end
begin_to_write()
for _, step in ipairs(taken) do
  if ARGV[step + 3] == '' then
    drop_schedule(ARGV[step])
  else
    keep_schedule(ARGV[step], ARGV[step + 3], ARGV[step + 4], ARGV[step + 5], ARGV[step + 6])
  end
end
for _, each in ipairs(new) do
  local job = each[2]
  make(each[1], ARGV[job + 1], ARGV[job + 2], ARGV[job + 3], ARGV[job + 4])
end
write_made()
write_lines()
tell_news()
return answers
