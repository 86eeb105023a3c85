-- note: makes a note, unless one that has not expired stands under its key; deletes a few that have.
-- KEYS: the store's prefix.
-- ARGV: now, sender, kind, key, body, keep (microseconds), replaces ('1' gives the one that stands this body).
-- Returns: made_at and body of the note that stands.
-- Guarantees: of several who make the same note the first one's stands. Looks at no more than a hundred expired ones.
--+ start
--+ room
--+ forget_notes
local kind, key, body = ARGV[3], ARGV[4], ARGV[5]
local name = kind .. ':' .. key
expect('hash', 'notes')
expect('zset', 'notes_expiring', 'notes_made:' .. kind)
local expired = expired_notes()
begin_to_write()
forget_notes(expired)
local expires = redis.call('ZSCORE', prefix .. 'notes_expiring', name)
if not expires or tonumber(expires) <= now then
  redis.call('HSET', prefix .. 'notes', name, body)
  redis.call('ZADD', prefix .. 'notes_expiring', text(now + tonumber(ARGV[6])), name)
  redis.call('ZADD', prefix .. 'notes_made:' .. kind, now_text, key)
elseif ARGV[7] == '1' then
  redis.call('HSET', prefix .. 'notes', name, body)
end
local made = redis.call('ZSCORE', prefix .. 'notes_made:' .. kind, key)
return {text(tonumber(made)), redis.call('HGET', prefix .. 'notes', name)}
