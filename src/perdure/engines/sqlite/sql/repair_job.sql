-- repair: makes a job's record agree with its state.
-- Parameters: id, now.
-- Rows: none.
-- Concurrency: looks at the record once more, so that a job that has moved on is left as it is.
-- Indexes: the primary key.
UPDATE perdure_jobs
SET
    state = CASE
        WHEN (state = 'running' AND worker IS NULL) OR (state = 'dead' AND reason = 'damaged') THEN 'ready'
        ELSE state
    END,
    worker = CASE WHEN state = 'running' THEN worker END,
    is_cancelling = CASE WHEN state = 'running' AND worker IS NOT NULL THEN is_cancelling ELSE 0 END,
    ended_at = CASE
        WHEN state = 'waiting' OR state = 'ready' OR state = 'running' OR (state = 'dead' AND reason = 'damaged') THEN NULL
        ELSE COALESCE(ended_at, :now)
    END,
    fingerprint = CASE
        WHEN state = 'dead' AND reason = 'damaged' THEN NULL
        WHEN state = 'dead' THEN COALESCE(fingerprint, 'unknown')
        ELSE fingerprint
    END,
    reason = CASE WHEN state = 'dead' AND reason = 'damaged' THEN NULL ELSE reason END
WHERE
    id = :id
    AND (
        (state = 'running' AND worker IS NULL)
        OR (state = 'dead' AND reason = 'damaged')
        OR (state <> 'running' AND (worker IS NOT NULL OR is_cancelling = 1))
        OR ((state = 'waiting' OR state = 'ready' OR state = 'running') AND ended_at IS NOT NULL)
        OR ((state = 'succeeded' OR state = 'dead' OR state = 'cancelled') AND ended_at IS NULL)
    )
