"""Logs: rows under offsets that are never reused."""
