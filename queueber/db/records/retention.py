"""The kinds of records that the family `forget` has entries for."""

FORGET_KEY = b"k"
FORGET_PRODUCER = b"p"
FORGET_BATCH = b"b"
FORGET_LOAD = b"l"
"""A load that is under way: it is dropped if no call comes until then."""
FORGET_LOADED = b"c"
"""The record of a committed load."""
