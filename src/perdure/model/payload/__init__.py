"""Arguments and results: plain data in, JSON text out, and secrets left out when shown."""
