-- The field of a live job's unique key, which comes with a '='; the task's length keeps the two apart, whatever they hold.
local function unique_field(task, unique)
  return #task .. ':' .. task .. ':' .. string.sub(unique, 2)
end

-- Frees the unique key of a job that ends, if it has one and it is the job's own.
local function free_unique(task, unique, id)
  if unique ~= '' then
    local field = unique_field(task, unique)
    if redis.call('HGET', prefix .. 'unique', field) == id then
      redis.call('HDEL', prefix .. 'unique', field)
    end
  end
end
