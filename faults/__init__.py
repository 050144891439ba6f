"""Fault injection: breaks Queueber on purpose, and checks its guarantees."""
