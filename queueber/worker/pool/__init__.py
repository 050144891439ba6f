"""A pool in one process: polls, extends leases, reports outcomes, and shuts down in order."""
