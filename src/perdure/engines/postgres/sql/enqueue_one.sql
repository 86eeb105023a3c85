-- enqueue: makes one job that has no unique key and belongs to no schedule; an error when its id exists.
-- Parameters: id, args, task, queue, priority, delay, run_at, delivery, max_attempts, retry, timeout, now, channel and
--     sender as in enqueue.sql.
-- Rows: one (nothing).
-- Concurrency: of two equal enqueues one makes the job; the other waits for it and fails, and is then done by
--     enqueue_alike.sql. Ids are new nearly always, and being ready for the other case would cost each of them.
-- Indexes: the primary key.
INSERT INTO perdure.jobs (
    id,
    task,
    queue,
    state,
    priority,
    run_at,
    delivery,
    created_at,
    max_attempts,
    retry,
    timeout,
    args
)
VALUES (
    :id::uuid,
    :task::text,
    :queue::text,
    CASE WHEN COALESCE(:delay::bigint, :run_at::bigint - /*+ now */, 0) <= 0 THEN 'ready' ELSE 'waiting' END,
    :priority::integer,
    COALESCE(/*+ now */ + :delay::bigint, :run_at::bigint, /*+ now */),
    :delivery::text,
    /*+ now */,
    :max_attempts::integer,
    :retry::text,
    :timeout::bigint,
    :args::bytea
)
RETURNING CASE WHEN :channel::text IS NOT NULL THEN PG_NOTIFY(:channel::text, :sender::text)::text END
