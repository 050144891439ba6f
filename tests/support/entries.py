"""Short ways to the entries that tests expect in an index."""

from queueber.db.records.keys import DUE_BYTES, Due, Mark, MarkFields, encode_mark

LOWEST_DUE = Due(bytes(DUE_BYTES))


def plain_mark(size: int) -> Mark:
    return encode_mark(MarkFields(size))
