"""Sorted files that a bulk load brings."""
