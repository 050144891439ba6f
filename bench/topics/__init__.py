"""Compares topics of Queueber with those of others, at the same durability, in one run."""
