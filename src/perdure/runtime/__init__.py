"""The running parts: what fetches, runs, commits and keeps jobs alive, each named after the store verb it calls."""
