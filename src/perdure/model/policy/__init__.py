"""Retry policies: as data, as text, and which one applies to a job."""
