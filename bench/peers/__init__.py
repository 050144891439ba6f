"""Compares Queueber with its alternatives, at the same durability, in one run."""
