"""Break it on purpose: faults of disks and power, and what must hold all the same."""
