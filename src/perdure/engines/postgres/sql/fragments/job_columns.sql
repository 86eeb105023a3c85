-- The columns of a job in the order that rows.py reads them.
/*+ claimed_columns */,
    jobs.queue,
    jobs.state,
    jobs.worker,
    jobs.is_cancelling,
    jobs.result,
    jobs.ended_at
