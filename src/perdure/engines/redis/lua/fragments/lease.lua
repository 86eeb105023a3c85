-- The end of a worker's lease; nil when it was struck off, or never registered. `registered` holds the same as `workers`, so that
-- leases outlive the loss of one of the two keys.
local function lease_of(worker)
  local lease = redis.call('ZSCORE', prefix .. 'workers', worker) or redis.call('ZSCORE', prefix .. 'registered', worker)
  return lease and tonumber(lease)
end
