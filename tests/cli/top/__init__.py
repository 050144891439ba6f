"""`queueber top`."""
