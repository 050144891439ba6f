"""Schedules: items that the server adds to queues at given times."""
