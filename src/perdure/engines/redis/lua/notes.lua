-- notes: the notes of a kind that stand, newest first.
-- KEYS: the store's prefix.
-- ARGV: now, sender, kind, from (how many of the newest to pass over), limit.
-- Returns: how many were looked at, and of each that stands key, made_at and body.
-- Guarantees: reads only; one picture of all. Looks at no more than `limit`.
--+ start
local kind = ARGV[3]
local first = tonumber(ARGV[4])
local found = redis.call(
  'ZREVRANGE', prefix .. 'notes_made:' .. kind, first, first + tonumber(ARGV[5]) - 1, 'WITHSCORES'
)
local notes = {}
for at = 1, #found, 2 do
  local name = kind .. ':' .. found[at]
  local expires = redis.call('ZSCORE', prefix .. 'notes_expiring', name)
  if expires and tonumber(expires) > now then
    notes[#notes + 1] = {found[at], text(tonumber(found[at + 1])), redis.call('HGET', prefix .. 'notes', name)}
  end
end
return {#found / 2, notes}
