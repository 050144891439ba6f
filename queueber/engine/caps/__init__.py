"""Caps: how many items of a queue are leased at once, and in a time."""
