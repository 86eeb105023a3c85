"""The server process: connections, deadlines and signals."""
