"""Background tasks: what becomes due, disk space to free, syncing."""
