"""Faults of the disk: failing calls, a full disk, damaged files."""
