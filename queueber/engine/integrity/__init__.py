"""Checks a store against its rules, and rebuilds one that breaks them."""
