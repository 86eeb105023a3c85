-- A running job's record after its fence: whether it is to be cancelled, and where it goes on with lane, queue, unique, schedule
-- and task. Needs the fragment `record`.
local REST = '^[^\255]*\255([^\255]*)\255' .. string.rep('[^\255]*\255', ENDED_AT - REASON + 1)
  .. '()([^\255]*)\255([^\255]*)\255([^\255]*)\255([^\255]*)\255([^\255]*)\255'
