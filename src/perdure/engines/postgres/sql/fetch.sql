-- fetch: claims the first ready jobs of each lane of a queue for a worker whose lease holds; none when it is paused.
-- Parameters: worker, queue, count (how many at most), share and carry (in millionths), is_strict, max_retries_running
--     (null: no cap), concurrency (null: no limit), now.
-- Rows: the jobs claimed, in no order, each with the room offered and whether it took long to find them; see
--     fetch_nothing.sql when there are none.
-- Concurrency: a job that another fetch is about to claim is skipped, not waited for; each job is locked before it is
--     claimed, and no more are locked than are claimed. The inner LIMIT tells the planner how few are wanted, the outer
--     one how many it turns out to be. Cap and limit are exact when fetch_lock.sql ran before it in the same transaction. A
--     fetch that began before a pause was durable may still claim.
-- Indexes: jobs_ready, read in order up to the limits; jobs_retrying for the cap; jobs_running, all of it, for the limit:
--     what runs is few, and a claim writes no further index for it; claims by the primary key.
WITH /*+ first_ready */

UPDATE perdure.jobs
SET
    /*+ claimed */
WHERE id = ANY(
    ARRAY(
        SELECT retry.id FROM retry
        UNION ALL
        SELECT fresh.id FROM fresh
        UNION ALL
        SELECT more_retry.id FROM more_retry
    )
)
RETURNING
    /*+ claimed_columns */,
    (SELECT want.room FROM want),
-- Evaluated once, when the first job has been claimed.
    (SELECT /*+ is_slow */ FROM want)
