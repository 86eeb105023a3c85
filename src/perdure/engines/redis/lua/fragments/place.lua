-- A job's place: its run_at in eighteen digits, then its id, so that places sort by bytes as they should by time.
local function place_of(run_at, id)
  if string.sub(run_at, 1, 1) == '-' then
    run_at = '0'
  end
  return string.rep('0', 18 - #run_at) .. run_at .. ':' .. id
end
