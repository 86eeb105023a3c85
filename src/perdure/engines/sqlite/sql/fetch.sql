-- fetch: claims the chosen jobs for a worker.
-- Parameters: rowids (a JSON array), worker, now.
-- Rows: none; fetch_claimed.sql shows the jobs.
-- Concurrency: runs under the write lock in which the jobs were chosen; a job is claimed by one worker only.
-- Indexes: none; rows by rowid.
UPDATE perdure_jobs
SET
    state = 'running',
-- [INV-4] The only place that writes an attempt's number.
    attempt = attempt + 1,
    worker = :worker,
-- [INV-5] An at-most-once job has not started until start.sql says so.
    started_at = CASE delivery WHEN 'at_most_once' THEN NULL ELSE :now END
WHERE rowid IN (SELECT value FROM JSON_EACH(:rowids))
