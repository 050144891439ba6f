"""Faults of the disk: calls that fail, no room, and bytes that are not what was written."""
