"""Hostile clients, which `python -m faults.hostile` runs against a server."""
