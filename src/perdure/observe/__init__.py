"""Turns events into what people and machines watch: log lines now, counters and alerts beside them."""
