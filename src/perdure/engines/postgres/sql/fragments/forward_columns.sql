-- The columns of a forward in the order that forwards.py reads them.
forwards.job_id::text,
    forwards.attempt,
    forwards.queue,
    forwards.sink,
    forwards.state,
    forwards.tries,
    forwards.next_at,
    forwards.tried_at,
    forwards.forwarded_at,
    forwards.error
