"""The SQLite engine: one writer thread, group commit, a file that several processes may share."""
