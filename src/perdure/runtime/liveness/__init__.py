"""A worker either works or its process ends: leases, the watchdog and the guard process."""
