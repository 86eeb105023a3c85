-- The field of a live job's unique key; the task's length keeps the two apart, whatever they hold.
local function unique_field(task, unique)
  return #task .. ':' .. task .. ':' .. unique
end

-- Frees the unique key of a job that ends, if it is the job's own.
local function free_unique(task, unique, id)
  if unique then
    local field = unique_field(task, unique)
    if redis.call('HGET', prefix .. 'unique', field) == id then
      redis.call('HDEL', prefix .. 'unique', field)
    end
  end
end
