-- fetch, reap: takes jobs from a worker that cannot be read, so that they are not handed out again.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker; then per job its id and the record that it had before the claim ('' where that is not known).
-- Returns: how many were taken from the worker.
-- Guarantees: the attempt is not counted. A record whose fields can be told apart is dead, reason `damaged`, and otherwise as it
--     was; any other one is as it was before the claim, and in no line.
--+ start
--+ many
--+ record
--+ counts
--+ unique
--+ unfinished
--+ room
local worker = ARGV[3]
expect('set', 'running:' .. worker, 'cancelling:' .. worker, 'vanished')
expect('zset', 'dead')
expect('hash', 'counts', 'unique')
local taken = {}
local written = {}
local dead = {}
for at = 4, #ARGV, 2 do
  local id, before = ARGV[at], ARGV[at + 1]
  local record = redis.call('HGET', prefix .. 'records', id) or ''
  local job = {string.match(record, WHOLE)}
  if string.find(record, '\255' .. worker .. '\255', 1, true) and string.sub(record, 1, 8) == 'running\255' then
    taken[#taken + 1] = id
    if #job > 0 then
      if job[SCHEDULE] ~= '' then
        expect('set', unfinished_of(job[SCHEDULE]))
      end
      dead[#dead + 1] = {id, job}
    elseif before ~= '' then
      written[#written + 1] = id
      written[#written + 1] = before
    end
  else
    taken[#taken + 1] = id
  end
end

begin_to_write()
for _, each in ipairs(dead) do
  local id, job = each[1], each[2]
  count('running', lane_of(job), job[QUEUE], -1)
  count('dead', lane_of(job), job[QUEUE], 1)
  job[STATE], job[ATTEMPT], job[WORKER], job[IS_CANCELLING] = 'dead', text((tonumber(job[ATTEMPT]) or 1) - 1), '', ''
  job[REASON], job[FINGERPRINT], job[ENDED_AT] = '=damaged', 'damaged', now_text
  written[#written + 1] = id
  written[#written + 1] = record_of(job)
  redis.call('ZADD', prefix .. 'dead', 0, id)
  free_unique(job[TASK], job[UNIQUE], id)
  finish(job[SCHEDULE], id)
end
write_many('HSET', prefix .. 'records', written)
write_many('SREM', prefix .. 'running:' .. worker, taken)
write_many('SREM', prefix .. 'cancelling:' .. worker, taken)
if redis.call('EXISTS', prefix .. 'running:' .. worker) == 0 then
  redis.call('SREM', prefix .. 'vanished', worker)
end
write_counts()
return #taken
