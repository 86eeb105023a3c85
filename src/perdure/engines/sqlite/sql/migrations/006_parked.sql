-- Version 6: parked jobs are found by their task, so that a worker that knows it need not wait until they are due.

CREATE INDEX perdure_jobs_parked ON perdure_jobs (queue, task) WHERE state = 'waiting' AND reason = 'parked';
