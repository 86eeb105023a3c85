-- What a claim makes of a job, as the SET of its UPDATE; needs the fragment first_ready.
state = 'running',
-- [INV-4] The only place that writes an attempt's number.
    attempt = attempt + 1,
    worker = :worker::text,
-- [INV-5] An at-most-once job has not started until start.sql says so.
    started_at = CASE WHEN delivery = 'at_most_once' THEN NULL ELSE (SELECT want.now FROM want) END
