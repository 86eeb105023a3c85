-- deregister: strikes a worker off at its own wish; jobs still running under it are then found by reap.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker.
-- Returns: 1.
-- Guarantees: a repeated deregister changes nothing.
--+ start
--+ room
local worker = ARGV[3]
expect('zset', 'workers', 'registered')
expect('set', 'vanished')
begin_to_write()
local was_registered = redis.call('ZREM', prefix .. 'registered', worker) == 1
if redis.call('ZREM', prefix .. 'workers', worker) == 1 or was_registered then
  redis.call('DEL', prefix .. 'worker:' .. worker)
  if redis.call('EXISTS', prefix .. 'running:' .. worker) == 1 then
    redis.call('SADD', prefix .. 'vanished', worker)
  end
end
return 1
