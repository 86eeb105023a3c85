"""Queues: their settings, and how workers share their capacity between them."""
