"""Schedules: their definitions, their rules, and which ticks fire."""
