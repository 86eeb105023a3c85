-- What a claim makes of a job, as the SET of its UPDATE; needs the fragment first_ready.
state = 'running',
-- [INV-4] The only place that writes an attempt's number.
    attempt = attempt + 1,
    worker = :worker::text,
    started_at = (SELECT want.now FROM want)
