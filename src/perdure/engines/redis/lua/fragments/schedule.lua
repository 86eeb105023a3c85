-- Schedules: a document by name, and the lines in which those stand that are due or queued.

-- Puts a schedule where its next tick and its backlog say; next_at is '' for none, is_queued is '1' or ''.
local function keep_schedule(name, revision, next_at, is_queued, document)
  redis.call('HSET', prefix .. 'schedule:' .. name, 'revision', revision, 'document', document)
  redis.call('ZADD', prefix .. 'schedules', 0, name)
  if next_at == '' then
    redis.call('ZREM', prefix .. 'due', name)
  else
    redis.call('ZADD', prefix .. 'due', next_at, name)
  end
  redis.call(is_queued == '1' and 'SADD' or 'SREM', prefix .. 'queued', name)
end

local function drop_schedule(name)
  redis.call('ZREM', prefix .. 'schedules', name)
  redis.call('ZREM', prefix .. 'due', name)
  redis.call('SREM', prefix .. 'queued', name)
  return redis.call('DEL', prefix .. 'schedule:' .. name)
end

local function expect_schedule(name)
  expect('hash', 'schedule:' .. name)
  expect('zset', 'schedules', 'due')
  expect('set', 'queued')
end
