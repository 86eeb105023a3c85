"""The PostgreSQL engine: one statement a verb, connections of the calling thread or of the running event loop."""
