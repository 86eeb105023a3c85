-- queues, count: how many jobs there are, by queue, state and lane, and which queues are paused.
-- KEYS: the store's prefix.
-- ARGV: now, sender.
-- Returns: how many jobs there are in all; `state:lane:queue`, number of each counter; queue, `paused_at|reason` of each
--     paused queue.
-- Guarantees: reads only; its cost follows the number of queues, not of jobs.
--+ start
return {
  redis.call('ZCARD', prefix .. 'jobs'), redis.call('HGETALL', prefix .. 'counts'),
  redis.call('HGETALL', prefix .. 'paused')
}
