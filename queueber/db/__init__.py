"""Bytes: the column families, their keys and records, and the store that holds them."""
