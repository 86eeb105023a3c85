-- put schedule: keeps a schedule under its name, a new one or in place of the revision that it replaces.
-- KEYS: the store's prefix.
-- ARGV: now, sender, name, replaces ('' for a new one, else '=' and it), revision, next_at ('' for none), is_queued ('1' or
--     ''), document.
-- Returns: 1 when it was kept, else 0.
-- Guarantees: of two changes of one revision the first is kept. A change that was made already is answered as it was; a
--     schedule that was removed does not come back by a change.
--+ start
--+ given
--+ lines
--+ schedule
local name, replaces, revision = ARGV[3], given(ARGV[4]), ARGV[5]
expect_schedule(name)
local found = redis.call('HGET', prefix .. 'schedule:' .. name, 'revision') or nil
if found ~= replaces and found ~= revision then
  return 0
end
keep_schedule(name, revision, ARGV[6], ARGV[7], ARGV[8])
is_news = true
tell_news()
return 1
