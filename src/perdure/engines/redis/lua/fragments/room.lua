-- Lets the script go on when the server is full: what has written once is not refused for want of memory later.
local function begin_to_write()
  redis.call('HDEL', prefix .. 'counts', '')
end
