-- register: counts a worker among the living; a repeated register renews it.
-- KEYS: the store's prefix.
-- ARGV: now, sender, worker, host, pid, queues (opaque), concurrency, version, lease (microseconds).
-- Returns: 1.
-- Guarantees: one entry per worker id. A full server still takes workers.
--+ start
--+ room
local worker, info = ARGV[3], prefix .. 'worker:' .. ARGV[3]
expect('zset', 'workers', 'registered')
expect('hash', 'worker:' .. worker)
expect('set', 'vanished')
begin_to_write()
redis.call('SREM', prefix .. 'vanished', worker)
redis.call('ZADD', prefix .. 'workers', after(ARGV[9]), worker)
redis.call('ZADD', prefix .. 'registered', after(ARGV[9]), worker)
redis.call('HSETNX', info, 'started_at', now_text)
redis.call(
  'HSET', info,
  'host', ARGV[4], 'pid', ARGV[5], 'queues', ARGV[6], 'concurrency', ARGV[7], 'version', ARGV[8], 'beat_at', now_text
)
return 1
