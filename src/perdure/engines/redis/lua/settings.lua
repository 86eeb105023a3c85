-- settings: what operators have set about queues.
-- KEYS: the store's prefix.
-- ARGV: now, sender.
-- Returns: `name:queue`, value of each setting.
-- Guarantees: reads only; its cost follows the number of settings.
--+ start
return redis.call('HGETALL', prefix .. 'settings')
