"""A pool in one process: leases items, keeps the leases, reports the outcomes."""
