"""Queueber beside what its users would pick instead, at the same durability, in one run."""
