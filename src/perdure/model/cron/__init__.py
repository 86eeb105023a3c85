"""Cron expressions: parsed, described in words, and the times they match."""
