"""Bulk loads: items that arrive as files and become visible together."""
