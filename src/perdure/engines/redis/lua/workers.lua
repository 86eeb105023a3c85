-- workers: every registered worker.
-- KEYS: the store's prefix.
-- ARGV: now, sender.
-- Returns: of each its id, the end of its lease, its fields, and how many jobs it is running.
-- Guarantees: reads only; one picture of all.
--+ start
local workers = {}
local found = redis.call('ZRANGE', prefix .. 'workers', 0, -1, 'WITHSCORES')
for at = 1, #found, 2 do
  workers[#workers + 1] = {
    found[at], text(tonumber(found[at + 1])), redis.call('HGETALL', prefix .. 'worker:' .. found[at]),
    redis.call('SCARD', prefix .. 'running:' .. found[at])
  }
end
return workers
