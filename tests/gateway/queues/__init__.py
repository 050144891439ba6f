"""Queues over HTTP."""
