-- replay, retry, discard: ends the forwarding of a job that is not dead any more.
-- Parameters: id.
-- Rows: none.
-- Concurrency: runs in the transaction of the verb; a try that is under way is not accepted afterwards.
-- Indexes: the primary key.
DELETE FROM perdure_forwards
WHERE job_id = :id
