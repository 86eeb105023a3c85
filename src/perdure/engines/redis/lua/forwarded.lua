-- forwarded: writes what tries came to.
-- KEYS: the store's prefix.
-- ARGV: now, sender; then per try id, attempt, number, state, sink, error, delay; sink and what follows it is '' for
--     none, else '=' and it.
-- Returns: for each 1 when it was accepted, else 0.
-- Guarantees: a success is accepted from any try of this death, a failure from the newest only, and never after a
--     success.
--+ start
--+ given
--+ counter
--+ forwards
--+ room
local WIDTH = 7
for at = 3, #ARGV, WIDTH do
  local queue = redis.call('HGET', prefix .. 'forward:' .. ARGV[at], 'queue')
  if queue then
    expect_forward(ARGV[at], queue)
  end
end

begin_to_write()
local answers = {}
for at = 3, #ARGV, WIDTH do
  local id, attempt, number, state = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local sink, failure, delay = given(ARGV[at + 4]), given(ARGV[at + 5]), given(ARGV[at + 6])
  local key = prefix .. 'forward:' .. id
  local found = redis.call('HMGET', key, 'attempt', 'tries', 'state', 'queue', 'forwarded_at')
  local is_newest = found[2] == number and found[3] ~= 'forwarded'
  -- [INV-22] What the sink has accepted is forwarded; what it has not stays due.
  local is_accepted = found[1] == attempt and (state == 'forwarded' or is_newest)
  if is_accepted then
    local line = prefix .. 'forwards:' .. found[4]
    count_forward(found[3], -1)
    count_forward(state, 1)
    redis.call('HSET', key, 'state', state)
    if sink then
      redis.call('HSET', key, 'sink', sink)
    end
    if failure then
      redis.call('HSET', key, 'error', failure)
    else
      redis.call('HDEL', key, 'error')
    end
    if state == 'failing' then
      redis.call('HSET', key, 'next_at', after(delay))
      redis.call('ZADD', line, after(delay), id)
    else
      redis.call('HDEL', key, 'next_at')
      redis.call('ZREM', line, id)
    end
    if state == 'forwarded' then
      redis.call('HSET', key, 'forwarded_at', found[5] or now_text)
    end
  end
  answers[#answers + 1] = is_accepted and 1 or 0
end
write_forward_counts()
return answers
