-- The columns of a forward in the order that forwards.py reads them.
job_id,
attempt,
queue,
sink,
state,
tries,
next_at,
tried_at,
forwarded_at,
error
