"""Hostile callers of the gateway: slow, endless, broken, too many. Others must be served."""
