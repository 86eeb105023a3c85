-- Version 7: parked jobs are found by their task, so that a worker that knows it need not wait until they are due.
-- The index holds parked jobs only; writers wait while the table is read once.

CREATE INDEX IF NOT EXISTS jobs_parked ON perdure.jobs (queue, task) WHERE state = 'waiting' AND reason = 'parked';
