"""Child processes that run attempts of tasks with `process=True`."""
