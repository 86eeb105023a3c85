"""The engines: concrete stores, each the mirror of `store/` in its own dialect."""
