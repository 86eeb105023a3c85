-- Lets the script go on when the server is full: what has written once is not refused for want of memory later. If the
-- counters are a key of another kind, the script stops here.
local function begin_to_write()
  redis.call('HDEL', prefix .. 'counts', '')
end
