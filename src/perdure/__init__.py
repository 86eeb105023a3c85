"""Perdure."""
