-- beat: renews a worker's lease, unless the worker was struck off.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker, lease (microseconds).
-- Returns: nil when the worker was struck off; else id, attempt of each job that the worker is running.
-- Guarantees: a worker that was struck off cannot come back to life. Leases hold on a
--     full server too.
--+ start
--+ many
--+ room
--+ lease
local worker = ARGV[3]
expect('hash', 'worker:' .. worker, 'records')
expect('set', 'running:' .. worker)
expect('zset', 'workers', 'registered')
if not lease_of(worker) then
  return false
end
begin_to_write()
redis.call('ZADD', prefix .. 'workers', after(ARGV[4]), worker)
redis.call('ZADD', prefix .. 'registered', after(ARGV[4]), worker)
redis.call('HSET', prefix .. 'worker:' .. worker, 'beat_at', now_text)
local held = {}
local ids = redis.call('SMEMBERS', prefix .. 'running:' .. worker)
for number, record in ipairs(read_many(prefix .. 'records', ids)) do
  local attempt = string.match(record or '', '^running\255(%d+)\255')
  if attempt then
    held[#held + 1] = ids[number]
    held[#held + 1] = attempt
  end
end
return held
