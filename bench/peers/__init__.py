"""The peers: one adapter each, run inside the peer's own environment.

An adapter is a module with some of these; each may be a coroutine function or a plain one:

    setup()                            make tables, once per fresh store
    connect(), disconnect()            around what is timed
    enqueue_one(task, numbers)         one durable enqueue after the other
    enqueue_bulk(task, numbers)        all in one call, where the peer has such a call
    enqueue_at(task, numbers, due)     all due at that moment (seconds since 1970), in bulk where that exists
    work()                             work until ended, where the peer has no command line for it
    settled(jobs)                      how many jobs the peer's own books count as succeeded

Tasks are `noop_async`, `noop_sync` and `fail_twice`, and Perdure's own `compute` and `noop_at_most_once`; what they do
stands in `bench.peers.job`. BENCH_URL names the store. Which package, which version, which settings and why:
`bench.catalogue`.
"""
