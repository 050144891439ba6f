"""Faults, made on purpose: what the server is put through, and what it must keep."""
