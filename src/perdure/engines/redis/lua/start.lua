-- start: records that the worker is about to enter the handlers of these attempts.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker; then per attempt the job's id and the attempt's number.
-- Returns: the ids of the attempts that may be entered; none when the worker was struck off.
-- Guarantees: nothing else runs meanwhile, so a reaper either strikes the worker off before, and then nothing may be entered,
--     or finds the job afterwards and sees that it was entered.
--+ start
--+ many
--+ room
--+ lease
local worker = ARGV[3]
expect('zset', 'workers')
expect('hash', 'records')
if not lease_of(worker) then
  return {}
end

local ids = {}
for at = 4, #ARGV, 2 do
  ids[#ids + 1] = ARGV[at]
end
local started = {}
local written = {}
for number, record in ipairs(read_many(prefix .. 'records', ids)) do
  -- [INV-3] Only the current attempt may start, in the worker that claimed it.
  local fence = 'running\255' .. ARGV[3 + 2 * number] .. '\255' .. worker .. '\255'
  if record and string.sub(record, 1, #fence) == fence then
    local rest = string.find(record, '\255', #fence + 1, true)
    started[#started + 1] = ids[number]
    written[#written + 1] = ids[number]
    written[#written + 1] = fence .. now_text .. string.sub(record, rest)
  end
end
if #written > 0 then
  begin_to_write()
  write_many('HSET', prefix .. 'records', written)
end
return started
